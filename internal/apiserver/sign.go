package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// The name of the ConfigMap that says who runs a run and when it was alive, and its keys. Every API server that can be
// tested has ConfigMaps.
const (
	signName   = "run"
	holderKey  = "holder"
	renewedKey = "renewed"
)

// LastLabel is the label of namespaces that a removal leaves until the end: the one with that ConfigMap, and the one of a
// relay, because the Hooks behind it convert custom resources until these are removed.
const LastLabel = "admissiontest.dev/alive"

// aliveFor is how long a run counts as alive after it renewed its sign. The clocks of two machines may differ by less
// than that.
const aliveFor = time.Minute

// renewInterval is the time between two renewals.
const renewInterval = aliveFor / 4

func configMaps() client.Resource {
	return client.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true, Deletable: true}
}

// signNamespace returns the namespace with the sign of a run.
func signNamespace(run string) string { return runid.Prefix(run) + "-run" }

func signObject(run string) client.Object {
	return client.Object{Resource: configMaps(), Namespace: signNamespace(run), Name: signName}
}

// sign is the sign of life of the run of this process: a ConfigMap in a namespace of the run, which the run renews. Its
// methods can be called by several goroutines at the same time.
type sign struct {
	client *client.Client
	run    string
	stop   context.CancelFunc

	mu   sync.Mutex // guards done
	done chan struct{}
}

// newSign returns the sign of a run, which does not exist yet.
func newSign(c *client.Client, run string) *sign { return &sign{client: c, run: run} }

// open creates the sign, once, and begins to renew it. If it fails, it can be called again.
func (s *sign) open(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		return nil
	}
	labels := map[string]any{RunLabel: s.run, LastLabel: "run"}
	_, err := s.client.Create(ctx, client.Namespace(signNamespace(s.run)), map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": signNamespace(s.run), "labels": labels},
	})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = s.client.Create(ctx, signObject(s.run), s.manifest())
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write the sign of life of run %s: %w", s.run, err)
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.done = stop, make(chan struct{})
	go func() {
		defer close(s.done)
		wait.UntilWithContext(renewing, func(ctx context.Context) {
			_, _ = s.client.Update(ctx, signObject(s.run), s.manifest()) // the next one is soon
		}, renewInterval)
	}()
	return nil
}

// end stops the renewal, also if the API server does not respond to it.
func (s *sign) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		s.stop()
		<-s.done
	}
}

func (s *sign) manifest() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": signName, "namespace": signNamespace(s.run), "labels": map[string]any{RunLabel: s.run}},
		"data":     map[string]any{holderKey: holder(), renewedKey: now()},
	}
}

func now() string { return time.Now().UTC().Format(metav1.RFC3339Micro) }

// holderSeparator is between host and process in a holder.
const holderSeparator = ", process "

// holder names this process.
func holder() string { return hostname() + holderSeparator + strconv.Itoa(os.Getpid()) }

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return host
}

// runState is a run as its sign describes it.
type runState struct {
	id string
	// holder names the process that runs or ran it.
	holder string
	// since and renewed are when it began, and when it was alive for the last time.
	since, renewed time.Time
}

// alive reports whether the run has renewed its sign recently. A run of this machine whose process has ended is not
// alive.
func (r runState) alive() bool { return time.Since(r.renewed) < aliveFor && !ended(r.holder) }

// ended reports whether a holder is a process of this machine that has ended.
func ended(holder string) bool {
	pid := 0
	host, text, found := strings.Cut(holder, holderSeparator)
	if _, err := fmt.Sscan(text, &pid); !found || err != nil || host != hostname() {
		return false
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	return errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// String is ID (HOLDER, since TIME).
func (r runState) String() string {
	return fmt.Sprintf("%s (%s, since %s)", r.id, r.holder, r.since.Format(time.RFC3339))
}

// runs returns the runs that have a sign on the cluster, by ID. It ignores one that is outside of the namespace of its
// run or cannot be read: another client wrote it.
func runs(ctx context.Context, c *client.Client) (map[string]runState, error) {
	list, err := c.ListObjects(ctx, configMaps(), metav1.ListOptions{LabelSelector: RunLabel})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the runs that are alive: %w", err)
	}
	found := map[string]runState{}
	for _, item := range list.Items { // of an API server that ignores selectors, all ConfigMaps
		id := item.GetLabels()[RunLabel]
		if id == "" || item.GetNamespace() != signNamespace(id) || item.GetName() != signName {
			continue
		}
		if run, err := parseSign(id, item); err == nil {
			found[id] = run
		}
	}
	return found, nil
}

func parseSign(id string, item unstructured.Unstructured) (runState, error) {
	data, _, _ := unstructured.NestedStringMap(item.Object, "data")
	renewed, err := time.Parse(metav1.RFC3339Micro, data[renewedKey])
	return runState{id: id, holder: strings.TrimSpace(data[holderKey]), since: item.GetCreationTimestamp().Time, renewed: renewed}, err
}
