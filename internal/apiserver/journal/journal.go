// Package journal keeps on the cluster what is known of a run: who runs it, since when, whether it is alive, of
// which resources it created objects, and which objects do not have its ID in their names.
//
// The journal is a ConfigMap in a namespace of the run, because every API server that can be tested has
// ConfigMaps:
//
//	kubectl get configmaps --all-namespaces -l admissiontest.dev/run -o yaml
//
// The run renews it. A run that does not renew its journal was killed, and its objects can be removed.
package journal

import (
	"context"
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

// The name of the ConfigMap, and its keys. Objects and resources have a line for each.
const (
	name         = "run"
	holderKey    = "holder"
	sinceKey     = "since"
	renewedKey   = "renewed"
	objectsKey   = "objects"
	resourcesKey = "resources"
)

// Label is the label of the namespace with the journal.
const Label = "admissiontest.dev/journal"

// Duration is how long a run counts as alive after it renewed its journal. The clocks of two machines may differ
// by less than that.
const Duration = time.Minute

// renewInterval is the time between two renewals.
const renewInterval = Duration / 4

// ConfigMaps returns the resource of journals.
func ConfigMaps() client.Resource {
	return client.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true, Deletable: true}
}

// Namespace returns the namespace with the journal of a run.
func Namespace(run string) string { return runid.Prefix(run) + "-run" }

// Selector returns the label selector of the namespace with the journal of a run.
func Selector(run string) string { return install.RunLabel + "=" + run + "," + Label }

func object(run string) client.Object {
	return client.Object{Resource: ConfigMaps(), Namespace: Namespace(run), Name: name}
}

// Journal is the journal of the run of this process. Its methods can be called by several goroutines at the same
// time.
type Journal struct {
	client *client.Client
	run    string
	since  string
	// renewing ends with stop.
	renewing context.Context //nolint:containedctx // that of a goroutine
	stop     context.CancelFunc

	mu     sync.Mutex // guards the fields below, and the writes of the journal
	done   chan struct{}
	exists bool
	// objects and resources are lines.
	objects, resources []string
}

// New returns the journal of a run, which does not exist yet.
func New(c *client.Client, run string) *Journal {
	renewing, stop := context.WithCancel(context.Background())
	return &Journal{client: c, run: run, renewing: renewing, stop: stop}
}

// Open creates the journal, once, and begins to renew it. If it fails, it can be called again.
func (r *Journal) Open(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.exists {
		return nil
	}
	r.since = now()
	labels := map[string]any{install.RunLabel: r.run, Label: "run"}
	_, err := r.client.Create(ctx, client.Namespace(Namespace(r.run)), map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace(r.run), "labels": labels},
	})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = r.client.Create(ctx, object(r.run), r.manifest())
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write the journal of run %s: %w", r.run, err)
	}
	r.exists = true
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		wait.UntilWithContext(r.renewing, func(ctx context.Context) { _ = r.write(ctx) }, renewInterval)
	}()
	return nil
}

// Add adds an object to the journal: before it is created, and with its UID after that if nothing else says that
// the run created it.
func (r *Journal) Add(ctx context.Context, o client.Object) error {
	return r.add(ctx, &r.objects, Entry(o))
}

// AddResource adds a resource of which the run is going to create objects.
func (r *Journal) AddResource(ctx context.Context, res client.Resource) error {
	line := res.GroupVersion().String() + "/" + res.Resource
	if res.Namespaced {
		line += " " + namespaced
	}
	return r.add(ctx, &r.resources, line)
}

// namespaced is in the lines of resources whose objects live in namespaces.
const namespaced = "namespaced"

// add adds a line to a list.
func (r *Journal) add(ctx context.Context, list *[]string, line string) error {
	if err := r.Open(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	known := slices.Contains(*list, line)
	if !known {
		*list = append(*list, line)
	}
	r.mu.Unlock()
	if known {
		return nil
	}
	return r.write(ctx)
}

// Entry is how an object is listed: RESOURCE.GROUP/NAME or RESOURCE.GROUP/NAMESPACE/NAME, and its UID
// after a space, if it has one.
func Entry(o client.Object) string { return strings.TrimSpace(o.Key() + " " + string(o.UID)) }

// Objects returns the Entry of each listed object.
func (r *Journal) Objects() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.objects)
}

// Stop ends the renewal, also if the API server does not respond to it.
func (r *Journal) Stop() {
	r.stop() // before mu, which the renewal holds
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != nil {
		<-done
	}
}

// write changes the journal.
func (r *Journal) write(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.client.Update(ctx, object(r.run), r.manifest()); err != nil {
		return fmt.Errorf("write the journal of run %s: %w", r.run, err)
	}
	return nil
}

// manifest returns the journal. The caller holds mu.
func (r *Journal) manifest() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": Namespace(r.run), "labels": map[string]any{install.RunLabel: r.run}},
		"data": map[string]any{
			holderKey: holder(), sinceKey: r.since, renewedKey: now(),
			objectsKey: strings.Join(r.objects, "\n"), resourcesKey: strings.Join(r.resources, "\n"),
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

// Run is a run as its journal describes it.
type Run struct {
	ID string
	// Holder names the process that runs or ran it.
	Holder string
	// Since and Renewed are when it began, and when it was alive for the last time.
	Since, Renewed time.Time
	// Objects are the Entry of each listed object.
	Objects []string
	// Resources are the resources of which it created objects.
	Resources []client.Resource
}

// Alive reports whether the run has renewed its journal recently. A run of this machine
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

// List returns the runs that have a journal on the cluster, by ID. List ignores a journal that is outside of the
// namespace of its run or cannot be read: another client wrote it.
func List(ctx context.Context, c *client.Client) (map[string]Run, error) {
	list, err := c.ListObjects(ctx, ConfigMaps(), metav1.ListOptions{LabelSelector: install.RunLabel})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the journals of runs: %w", err)
	}
	found := map[string]Run{}
	for _, item := range list.Items { // of an API server that ignores selectors, all ConfigMaps
		id := item.GetLabels()[install.RunLabel]
		if id == "" || item.GetNamespace() != Namespace(id) || item.GetName() != name {
			continue
		}
		if run, err := parse(id, item); err == nil {
			found[id] = run
		}
	}
	return found, nil
}

func parse(id string, item unstructured.Unstructured) (Run, error) {
	data, _, err := unstructured.NestedStringMap(item.Object, "data")
	run := Run{ID: id, Holder: strings.TrimSpace(data[holderKey]), Objects: lines(data[objectsKey])}
	errs := []error{err}
	for field, target := range map[string]*time.Time{sinceKey: &run.Since, renewedKey: &run.Renewed} {
		parsed, err := time.Parse(metav1.RFC3339Micro, data[field])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
		*target = parsed
	}
	for _, line := range lines(data[resourcesKey]) {
		path, scope, _ := strings.Cut(line, " ")
		at := max(strings.LastIndex(path, "/"), 0)
		version, err := schema.ParseGroupVersion(path[:at])
		if err != nil || at == 0 {
			errs = append(errs, fmt.Errorf("%s: %q: want GROUP/VERSION/RESOURCE", resourcesKey, line))
			continue
		}
		run.Resources = append(run.Resources, client.Resource{GroupVersionResource: version.WithResource(path[at+1:]), Namespaced: scope == namespaced, Deletable: true})
	}
	return run, errors.Join(errs...)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
