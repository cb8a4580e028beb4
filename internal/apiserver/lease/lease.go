// Package lease keeps on the cluster what is known of a run: who runs it, since when,
// whether it is alive, and which of its objects do not have its ID in their names.
//
// The Lease is in a namespace of the run:
//
//	kubectl get leases --all-namespaces -l admissiontest.dev/run
//
// The run renews it. A run whose Lease is not renewed was killed, and its objects can be
// removed.
package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
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
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

const (
	// leaseName is the name of the Lease.
	leaseName = "run"
	// objectsAnnotation has the listed objects, as a JSON list.
	objectsAnnotation = "admissiontest.dev/objects"
	// Label is the label of the namespace with the Lease.
	Label = "admissiontest.dev/lease"
)

// Duration is how long a run counts as alive after it renewed its Lease. The clocks of
// two machines may differ by less than that.
const Duration = time.Minute

// renewInterval is the time between two renewals.
const renewInterval = Duration / 4

// Leases returns the resource of Leases.
func Leases() client.Resource {
	return client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Namespaced: true, Deletable: true}
}

// Namespace returns the namespace with the Lease of a run.
func Namespace(run string) string { return runid.Prefix(run) + "-run" }

// Selector returns the label selector of the namespace with the Lease of a run.
func Selector(run string) string { return install.RunLabel + "=" + run + "," + Label }

func leaseOf(run string) client.Object {
	return client.Object{Resource: Leases(), Namespace: Namespace(run), Name: leaseName}
}

// Lease is the Lease of the run of this process. Its methods can be called by several
// goroutines at the same time.
type Lease struct {
	client *client.Client
	run    string
	since  string
	// renewing ends with stop.
	renewing context.Context //nolint:containedctx // that of a goroutine
	stop     context.CancelFunc

	mu      sync.Mutex // guards the fields below, and the writes of the Lease
	done    chan struct{}
	exists  bool
	objects []string
}

// New returns the Lease of a run, which does not exist yet.
func New(c *client.Client, run string) *Lease {
	renewing, stop := context.WithCancel(context.Background())
	return &Lease{client: c, run: run, renewing: renewing, stop: stop}
}

// Open creates the Lease, once, and begins to renew it.
func (l *Lease) Open(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exists {
		return nil
	}
	l.since = now()
	labels := map[string]any{install.RunLabel: l.run, Label: "run"}
	_, err := l.client.Create(ctx, client.Namespace(Namespace(l.run)), map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace(l.run), "labels": labels},
	})
	if err == nil {
		_, err = l.client.Create(ctx, leaseOf(l.run), l.manifest())
	}
	if err != nil {
		return fmt.Errorf("write the Lease of run %s: %w", l.run, err)
	}
	l.exists = true
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		wait.UntilWithContext(l.renewing, func(ctx context.Context) { _ = l.write(ctx) }, renewInterval)
	}()
	return nil
}

// Add lists an object in the Lease: before it is created, and with its UID after that if nothing else says that
// the run created it.
func (l *Lease) Add(ctx context.Context, o client.Object) error {
	if err := l.Open(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	entry := Entry(o)
	if slices.Contains(l.objects, entry) {
		l.mu.Unlock()
		return nil
	}
	l.objects = append(l.objects, entry)
	l.mu.Unlock()
	return l.write(ctx)
}

// Entry is how an object is listed: RESOURCE.GROUP/NAME or RESOURCE.GROUP/NAMESPACE/NAME, and its UID
// after a space, if it has one.
func Entry(o client.Object) string { return strings.TrimSpace(o.Key() + " " + string(o.UID)) }

// Objects returns the Entry of each listed object.
func (l *Lease) Objects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.objects)
}

// Stop ends the renewal, also if the API server does not respond to it.
func (l *Lease) Stop() {
	l.stop() // before mu, which the renewal holds
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done != nil {
		<-done
	}
}

// write changes the Lease.
func (l *Lease) write(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.client.Merge(ctx, leaseOf(l.run), l.manifest()); err != nil {
		return fmt.Errorf("write the Lease of run %s: %w", l.run, err)
	}
	return nil
}

// manifest returns the Lease. The caller holds mu.
func (l *Lease) manifest() map[string]any {
	objects, _ := json.Marshal(l.objects)
	return map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{
			"name": leaseName, "namespace": Namespace(l.run), "labels": map[string]any{install.RunLabel: l.run},
			"annotations": map[string]any{objectsAnnotation: string(objects)},
		},
		"spec": map[string]any{
			"holderIdentity": holder(), "acquireTime": l.since, "renewTime": now(),
			"leaseDurationSeconds": int64(Duration / time.Second),
		},
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

// Run is a run as its Lease describes it.
type Run struct {
	ID string
	// Holder names the process that runs or ran it.
	Holder string
	// Since and Renewed are when it began, and when it was alive for the last time.
	Since, Renewed time.Time
	// Objects are the Entry of each listed object.
	Objects []string
}

// Alive reports whether the run has renewed its Lease recently. A run of this machine
// whose process has ended is not alive.
func (r Run) Alive() bool { return time.Since(r.Renewed) < Duration && !ended(r.Holder) }

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
func (r Run) String() string {
	return fmt.Sprintf("%s (%s, since %s)", r.ID, r.Holder, r.Since.Format(time.RFC3339))
}

// List returns the runs that have a Lease on the cluster, by ID. List ignores a Lease
// that is outside of the namespace of its run or cannot be read: another client wrote it.
func List(ctx context.Context, c *client.Client) (map[string]Run, error) {
	list, err := c.ListObjects(ctx, Leases(), metav1.ListOptions{LabelSelector: install.RunLabel})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the Leases of runs: %w", err)
	}
	found := map[string]Run{}
	for _, item := range list.Items {
		id := item.GetLabels()[install.RunLabel]
		if item.GetNamespace() != Namespace(id) || item.GetName() != leaseName {
			continue
		}
		if run, err := parse(id, item); err == nil {
			found[id] = run
		}
	}
	return found, nil
}

func parse(id string, item unstructured.Unstructured) (Run, error) {
	run := Run{ID: id}
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(item.Object, "spec", field)
		return value
	}
	run.Holder = strings.TrimSpace(text("holderIdentity"))
	var errs []error
	for field, target := range map[string]*time.Time{"acquireTime": &run.Since, "renewTime": &run.Renewed} {
		parsed, err := time.Parse(metav1.RFC3339Micro, text(field))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
		*target = parsed
	}
	if objects := item.GetAnnotations()[objectsAnnotation]; objects != "" && objects != "null" {
		if err := json.Unmarshal([]byte(objects), &run.Objects); err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %w", objectsAnnotation, err))
		}
	}
	return run, errors.Join(errs...)
}
