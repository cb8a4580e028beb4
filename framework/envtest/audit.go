package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/internal/plugintrace"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Audit receives the API server's audit events over loopback, as an audit webhook backend
// (https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/), and returns them by audit ID.
//
// The audit level of requests for secrets is Metadata, of other writes RequestResponse. Reads,
// and writes of admission configurations, CustomResourceDefinitions and Leases are not logged. A
// server that records the calls of plugins also logs these writes, and GET requests that connect,
// with the level Metadata.
//
// The zero value has no API server: it has the events of Add.
type Audit struct {
	flags  map[string]string
	server *http.Server
	limit  *processes.Limit

	mu      sync.Mutex
	events  map[string]json.RawMessage
	arrived chan struct{} // closed by the next delivery; nil if nothing waits for it
}

// auditBatch is the limit of the body of one delivery, in bytes.
const auditBatch = 256 << 20

// auditPolicy has two gaps: for the rule of connects, and for the level of the writes of configurations. It does not use
// the group "*", which API servers before 1.36 refuse.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  nonResourceURLs: ["*"]
- level: None
  users: ["system:apiserver"]
%s- level: None
  verbs: [get, list, watch]
- level: %s
  resources: [{group: admissionregistration.k8s.io}, {group: apiextensions.k8s.io}, {group: coordination.k8s.io}]
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: RequestResponse
`

// auditConnects is for a server that records the calls of plugins: connects can be GET requests.
const auditConnects = `- level: Metadata
  verbs: [get]
  resources: [{group: "", resources: [pods/attach, pods/exec, pods/portforward, pods/proxy, services/proxy, nodes/proxy]}]
`

const auditConfig = `apiVersion: v1
kind: Config
clusters: [{name: sink, cluster: {server: "http://%s/%s"}}]
users: [{name: anonymous, user: {}}]
contexts: [{name: sink, context: {cluster: sink, user: anonymous}}]
current-context: sink
`

// startAudit starts the receiver and writes the files that configure the API server to use it.
func startAudit(folder string, observePlugins bool) (*Audit, error) {
	a := &Audit{limit: processes.NewLimit(processes.FewConnections)}
	listener, err := a.limit.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("receive audit events: %w", err)
	}
	secret := redact.NewPathSecret()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /"+secret, a.receive)
	a.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { _ = a.server.Serve(listener) }()
	policy, config := filepath.Join(folder, "audit-policy.yaml"), filepath.Join(folder, "audit-sink.yaml")
	connects, configurations := "", "None"
	if observePlugins {
		connects, configurations = auditConnects, "Metadata"
	}
	err = errors.Join(
		os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, connects, configurations), 0o600),
		os.WriteFile(config, fmt.Appendf(nil, auditConfig, listener.Addr(), secret), 0o600))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write audit configuration: %w", err), a.close())
	}
	a.flags = map[string]string{
		"audit-policy-file":                     policy,
		"audit-webhook-config-file":             config,
		"audit-webhook-mode":                    "batch",
		"audit-webhook-batch-max-wait":          "25ms",
		"audit-webhook-batch-throttle-enable":   "false",
		"audit-webhook-batch-buffer-size":       "100000",
		"audit-webhook-initial-backoff":         "100ms",
		"audit-webhook-truncate-enabled":        "true",
		"audit-webhook-truncate-max-event-size": "4194304",
	}
	return a, nil
}

// receive handles one delivery, an audit.k8s.io/v1 EventList.
func (a *Audit) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, auditBatch))
	if err == nil {
		err = a.add(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// add adds the events of an audit.k8s.io/v1 EventList, as JSON.
func (a *Audit) add(eventList []byte) error {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(eventList, &list); err != nil {
		return fmt.Errorf("decode audit events: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events == nil {
		a.events = map[string]json.RawMessage{}
	}
	for _, item := range list.Items {
		var head struct {
			AuditID string `json:"auditID"`
		}
		if json.Unmarshal(item, &head) == nil {
			a.events[head.AuditID] = item
		}
	}
	if a.arrived != nil {
		close(a.arrived)
		a.arrived = nil
	}
	return nil
}

// Event returns the audit event of a request. It waits for the event until ctx ends.
func (a *Audit) Event(ctx context.Context, auditID string) (*framework.Audit, error) {
	for {
		a.mu.Lock()
		if a.arrived == nil {
			a.arrived = make(chan struct{})
		}
		raw, ok, arrived := a.events[auditID], a.events[auditID] != nil, a.arrived
		a.mu.Unlock()
		if ok {
			return decodeEvent(raw)
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for audit event %s: %w; check that the audit policy logs the resource", auditID, ctx.Err())
		}
	}
}

func decodeEvent(raw json.RawMessage) (*framework.Audit, error) {
	var event struct {
		Level          string            `json:"level"`
		Annotations    map[string]string `json:"annotations"`
		RequestObject  json.RawMessage   `json:"requestObject"`
		ResponseObject json.RawMessage   `json:"responseObject"`
	}
	if err := json.Unmarshal(raw, &event); err != nil {
		return nil, fmt.Errorf("decode audit event: %w", err)
	}
	audit := &framework.Audit{Level: event.Level, Annotations: event.Annotations}
	if audit.Annotations == nil {
		audit.Annotations = map[string]string{}
	}
	records, err := kubeapiserver.Take(audit.Annotations)
	if err != nil {
		return nil, err
	}
	audit.Plugins = plugintrace.Trace(records)
	for _, part := range []struct {
		raw  json.RawMessage
		into *map[string]any
	}{{event.RequestObject, &audit.RequestObject}, {event.ResponseObject, &audit.ResponseObject}} {
		if text := strings.TrimSpace(string(part.raw)); text == "" || text == "null" || text[0] == '[' { // a JSON patch is a list
			continue
		}
		if err := utiljson.Unmarshal(part.raw, part.into); err != nil {
			return nil, fmt.Errorf("decode object of audit event: %w", err)
		}
	}
	return audit, nil
}

func (a *Audit) close() error { return a.server.Close() }
