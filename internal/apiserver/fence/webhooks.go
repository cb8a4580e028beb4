package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
)

// The limits of the wait for the webhooks under test.
const (
	// answerLimit is the limit of an Endpoint that sets none.
	answerLimit = 30 * time.Second
	// certificateLimit limits the wait for a webhook whose certificate is not valid:
	// waiting rarely helps.
	certificateLimit = 5 * time.Second
	// closedLimit is how long a webhook closes each connection until it counts as running. A proxy in
	// front of a webhook that is starting closes connections too.
	closedLimit = 2 * time.Second
	// answerTimeout is the timeoutSeconds of a call.
	answerTimeout = 5
	// answerInterval keeps the log of a webhook short that closes connections.
	answerInterval = 100 * time.Millisecond
)

// Webhooks waits for the webhooks under test: see install.Endpoints. The exported fields are required.
type Webhooks struct {
	Client  *client.Client
	Install *install.Installer
	// Progress receives a line for each longer action.
	Progress func(string)

	mu       sync.Mutex
	scope    *install.Scope
	count    int
	answered map[string]bool // by webhook.key
}

// webhook is one address of webhooks under test.
type webhook struct {
	// address is that of install.AddressOf, service the Service if it is one.
	address string
	service install.Service
	// given is the clientConfig of the scenario, clientConfig the one that leads to the address.
	given, clientConfig map[string]any
	// versions are the admissionReviewVersions.
	versions any
	limit    time.Duration
}

// key identifies the address.
func (w webhook) key() string {
	data, _ := json.Marshal(w.clientConfig)
	return string(data)
}

// url is the URL of the clientConfig, or "" if it names a Service.
func (w webhook) url() string { text, _ := w.clientConfig["url"].(string); return text }

// String names the address: "Service ns/name, called at https://…".
func (w webhook) String() string {
	if w.service.Namespace == "" {
		return w.url()
	}
	text := "Service " + w.service.String()
	if w.url() != "" {
		return text + ", called at " + w.url()
	}
	if w.service.Path != "" {
		text += ", path " + w.service.Path
	}
	return text
}

// notAnswered returns the addresses of the webhooks under test in configurations, each
// once, without those that have answered before, and without URLs that have no Endpoint.
func (e *Webhooks) notAnswered(manifests []map[string]any) []webhook {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[string]bool{}
	var found []webhook
	for _, manifest := range manifests {
		kind, err := object.Kind(manifest)
		list, ok := manifest["webhooks"].([]any)
		if err != nil || kind.Group != install.AdmissionGroup || !ok {
			continue
		}
		for _, item := range list {
			fields, _ := item.(map[string]any)
			clientConfig, _ := fields["clientConfig"].(map[string]any)
			one := webhook{address: install.AddressOf(clientConfig), service: install.ServiceOf(clientConfig), given: clientConfig, versions: fields["admissionReviewVersions"]}
			endpoint, known := e.Install.Endpoints.ByAddress[one.address]
			if !known && one.service.Namespace == "" || strings.Contains(one.service.Namespace, "at-"+e.Install.Run+"-") {
				continue
			}
			one.clientConfig = e.Install.Endpoints.Redirect(clientConfig)
			if one.limit = endpoint.Timeout; one.limit <= 0 {
				one.limit = answerLimit
			}
			if !seen[one.key()] && !e.answered[one.key()] {
				seen[one.key()] = true
				found = append(found, one)
			}
		}
	}
	return found
}

// Wait returns when the API server got an answer from each webhook under test in the
// configurations, whatever the answer is. Each address is asked once in a run. The
// error says which webhook does not answer, and why.
func (e *Webhooks) Wait(ctx context.Context, manifests []map[string]any) (err error) {
	found := e.notAnswered(manifests)
	if len(found) == 0 {
		return nil
	}
	scope, installed, err := e.install(ctx, found)
	if err != nil {
		return fmt.Errorf("call the webhook under test: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
		defer cancel()
		err = errors.Join(err, e.Client.Delete(clean, installed))
	}()
	began := time.Now()
	for i, one := range found {
		e.Progress("waiting for the webhook under test: " + one.String())
		if err := e.waitFor(ctx, scope, i, one, began); err != nil {
			return err
		}
		e.mu.Lock()
		if e.answered == nil {
			e.answered = map[string]bool{}
		}
		e.answered[one.key()] = true
		e.mu.Unlock()
	}
	return nil
}

// waitFor waits for the answer of the webhook with number i. One that closes connections without an
// answer is running: its calls fail, and scenarios can expect that.
func (e *Webhooks) waitFor(ctx context.Context, scope *install.Scope, i int, one webhook, began time.Time) error {
	var last callState
	var closes time.Time // since when each call ended without an answer
	err := client.Poll(ctx, answerInterval, max(one.limit-time.Since(began), client.Later), func() (bool, error) {
		var err error
		if last, err = e.call(ctx, scope, i); err != nil {
			return false, err
		}
		if last.certificate && time.Since(began) > certificateLimit {
			return false, framework.ErrTimeout
		}
		if !last.closed {
			closes = time.Time{}
		} else if closes.IsZero() {
			closes = time.Now()
		}
		return last.answered || last.closed && time.Since(closes) > closedLimit, nil
	})
	switch {
	case errors.Is(err, framework.ErrTimeout) && last.closed:
		return nil
	case errors.Is(err, framework.ErrTimeout):
		// This error is not an ErrTimeout: the webhook is to blame, not the API server.
		return fmt.Errorf("wait for the webhook under test: %s, does not answer within %s: %s; %s", one, time.Since(began).Round(time.Second), last.problem, one.remedy(last))
	case err != nil:
		return fmt.Errorf("wait for the webhook under test: %s: %w", one, err)
	}
	return nil
}

// remedy says what to do about a webhook under test that does not answer.
func (w webhook) remedy(last callState) string {
	switch {
	case last.certificate:
		return "its certificate must be valid for the host that is called and signed by the caBundle; if the configuration has no caBundle, give the CA with --endpoint-ca " + w.address + "=FILE; a PROGRAM can use the certificate in {cert-dir}"
	case w.service.Namespace == "":
		return "PROGRAM must serve it; for a webhook that is down, use a fault in hooks"
	case w.url() != "":
		return "start it before the run, at the address that --endpoint gives"
	default:
		return "deploy it before the run, or give the URL of one that runs elsewhere with --endpoint " + w.service.String() + "=URL"
	}
}

// Each address has two webhooks, which are called for ConfigMaps with its number in
// numberLabel and the failure policy in policyLabel. A failed call and a denial are
// distinguished by the failure policy: a request that is refused with Fail and allowed
// with Ignore means that the call failed.
const (
	numberLabel = "webhook"
	policyLabel = "failure-policy"
)

// markWebhook is a Hook in the same configuration: its call shows that the configuration is effective.
const markWebhook = "mark.ready.admissiontest.dev"

// install installs the webhooks that call the addresses.
func (e *Webhooks) install(ctx context.Context, found []webhook) (*install.Scope, client.Object, error) {
	scope, name, err := e.namespace(ctx)
	if err != nil {
		return nil, client.Object{}, err
	}
	webhooks := []any{map[string]any{"name": markWebhook, "rules": ProbeRules(), "failurePolicy": "Ignore", "timeoutSeconds": int64(answerTimeout)}}
	for i, one := range found {
		for _, policy := range []string{"Fail", "Ignore"} {
			fields := map[string]any{
				"name": fmt.Sprintf("n%d.%s.ready.admissiontest.dev", i, strings.ToLower(policy)), "rules": ProbeRules(),
				"failurePolicy": policy, "timeoutSeconds": int64(answerTimeout), "clientConfig": one.given,
				"objectSelector": map[string]any{"matchLabels": map[string]any{numberLabel: strconv.Itoa(i), policyLabel: policy}},
			}
			if one.versions != nil {
				fields["admissionReviewVersions"] = one.versions
			}
			webhooks = append(webhooks, fields)
		}
	}
	installed, err := e.Install.InstallAdmission(ctx, scope, map[string]any{
		"apiVersion": install.AdmissionGroup + "/v1", "kind": install.KindValidatingWebhooks,
		"metadata": map[string]any{"name": name}, "webhooks": webhooks,
	}, nil)
	return scope, installed, err
}

// namespace creates the namespace of these calls, once, and returns a new name for a
// configuration.
func (e *Webhooks) namespace(ctx context.Context) (*install.Scope, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.scope == nil {
		scope, err := e.Install.NewScope(ctx, "at-"+e.Install.Run+"-ready", hook.Conversion{})
		if err != nil {
			return nil, "", err
		}
		e.scope = scope
	}
	e.count++
	return e.scope, fmt.Sprintf("ready%d", e.count), nil
}
