package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// parallel limits the number of concurrent requests of a removal.
const parallel = 16

// The limits of a removal: goneLimit without progress, waitLimit in all. Each actInterval, what is left is deleted again.
const (
	goneLimit   = 170 * time.Second
	waitLimit   = 29 * time.Minute
	actInterval = 5 * time.Second
)

// remover removes what runs created, and waits until it is gone: first what decides about requests, because that can
// refuse the removal of the rest, then namespaces with their contents, then the other cluster-scoped objects. What cannot
// be removed does not keep the rest. The exported fields are required.
//
// Objects are found by the ID of the run in their names, or by the run as their field manager. Labels are compared here:
// an API server can ignore selectors.
type remover struct {
	client   *client.Client
	progress func(string)

	goneLimit time.Duration // replaces goneLimit in tests
}

// selection says which objects of which runs are removed.
type selection struct {
	// runs are the runs whose objects are found by names and field managers.
	runs []string
	// labelled reports whether objects with the label of a run belong to the selection.
	labelled func(run string) bool
	// last is true for the namespaces with LastLabel, and for nothing else.
	last bool
}

// removeRun removes what a run created.
func (r *remover) removeRun(ctx context.Context, run string) error {
	return r.removeAll(ctx, selection{runs: []string{run}, labelled: func(other string) bool { return other == run }})
}

// removeAll removes the objects of a selection, and then the namespaces with LastLabel.
func (r *remover) removeAll(ctx context.Context, which selection) error {
	r.progress("removing webhook configurations, policies, namespaces and other objects")
	for _, which.last = range []bool{false, true} {
		if err := r.remove(ctx, which); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the objects of a selection and waits until they are gone. The error names those that remain.
func (r *remover) remove(ctx context.Context, which selection) error {
	limit := cmp.Or(r.goneLimit, goneLimit)
	resources := r.client.Resources.Deletable(false)
	slices.SortStableFunc(resources, func(a, b client.Resource) int { return removalOrder(a) - removalOrder(b) })
	var left []client.Object
	var acted time.Time
	fewest, idle, last := -1, time.Duration(0), time.Now()
	err := client.Poll(ctx, client.Later, waitLimit, func() (_ bool, err error) {
		act := time.Since(acted) > min(actInterval, limit/10)
		if resources, left, err = r.round(ctx, resources, which, act); err != nil || len(left) == 0 {
			return err == nil, err
		}
		if act {
			acted = time.Now()
		}
		// This process can have been paused.
		idle, last = idle+min(time.Since(last), limit/10), time.Now()
		if fewest < 0 || len(left) < fewest {
			fewest, idle = len(left), 0
		}
		if idle > limit {
			err = fmt.Errorf("%w: no object was removed for %s", framework.ErrTimeout, limit)
		}
		return false, err
	})
	return notGone(err, left)
}

// removalOrder returns the place of a resource in the order of removal: namespaces after what decides about requests, and
// before CustomResourceDefinitions, whose deletion waits for their objects.
func removalOrder(res client.Resource) int {
	order := 2 * install.RemovalRank(res)
	if res.GroupVersionResource == client.Namespaces() {
		order--
	}
	return order
}

// round finds the objects of a selection and the resources that have any, and deletes them if act is true. An error does
// not keep the rest.
func (r *remover) round(ctx context.Context, resources []client.Resource, which selection, act bool) (with []client.Resource, found []client.Object, err error) {
	var errs []error
	for _, res := range resources {
		objects, err := r.owned(ctx, res, which)
		if err == nil && len(objects) > 0 {
			with, found = append(with, res), append(found, objects...)
			if act {
				err = r.deleteAll(ctx, objects)
			}
		}
		errs = append(errs, err)
	}
	return with, found, errors.Join(errs...)
}

// deleteAll deletes objects with their finalizers, and what is in namespaces. An error does not keep the rest.
func (r *remover) deleteAll(ctx context.Context, objects []client.Object) error {
	err := forEach(objects, func(o client.Object) error {
		err := client.WhileRefused(ctx, func() error { return r.client.Delete(ctx, o) })
		if err != nil {
			return err
		}
		if o.Resource.Resource == "customresourcedefinitions" {
			// The API server removes its finalizer after its objects. Where several API servers do that, all of them can
			// wait for its next change (docs/findings.md). The wait shows whether it is gone.
			_ = r.client.Touch(ctx, o)
			return nil
		}
		err = r.client.RemoveFinalizers(ctx, o)
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err) {
			return nil // the wait shows whether it is gone
		}
		return err
	})
	if objects[0].Resource.GroupVersionResource == client.Namespaces() {
		err = errors.Join(err, r.empty(ctx, objects))
	}
	return err
}

// forEach calls a function for each object, after an error too. It returns the first error.
func forEach(objects []client.Object, do func(client.Object) error) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, o := range objects {
		g.Go(func() error { return do(o) })
	}
	return g.Wait()
}

// empty deletes the objects in namespaces that are being deleted, in which no object can be created any more, and finalizes
// those that are empty then: a server without kube-controller-manager never does it, and others take seconds for each.
func (r *remover) empty(ctx context.Context, namespaces []client.Object) error {
	objects, _, err := r.contents(ctx, namespaces)
	if err == nil && len(objects) > 0 {
		err = r.deleteAll(ctx, objects)
	}
	if err != nil {
		return err
	}
	left, complete, err := r.contents(ctx, namespaces)
	if err != nil || !complete {
		return err
	}
	return forEach(namespaces, func(o client.Object) error {
		if slices.ContainsFunc(left, func(other client.Object) bool { return other.Namespace == o.Name }) {
			return nil
		}
		_, err := r.client.Update(ctx, o, map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.Name, "uid": string(o.UID)}, "spec": map[string]any{"finalizers": []any{}},
		}, "finalize")
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}

// contents returns the objects in namespaces. It reads one list of each resource, so that hundreds of namespaces cost no
// more than one. Complete is false if the API server refuses some lists: then the namespace controller finds the rest.
func (r *remover) contents(ctx context.Context, namespaces []client.Object) (objects []client.Object, complete bool, err error) {
	wanted := map[string]bool{}
	for _, o := range namespaces {
		wanted[o.Name] = true
	}
	complete = true
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, res := range r.client.Resources.Deletable(true) {
		g.Go(func() error {
			list, err := r.client.List(ctx, res, "", metav1.ListOptions{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
				return nil // nothing of it is stored
			case apierrors.IsForbidden(err):
				complete = complete && !r.hasNamespaceController(ctx) // without it, only the run could create objects
				return nil
			case apierrors.IsInternalError(err), apierrors.IsStoreReadError(err): // the conversion webhook of its kind is gone, for instance
				complete = false
				return nil
			case err != nil:
				return err
			}
			for _, item := range list.Items {
				if wanted[item.Namespace] {
					objects = append(objects, client.Object{Resource: res, Namespace: item.Namespace, Name: item.Name, UID: item.UID})
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return objects, complete, err
}

// hasNamespaceController reports whether kube-controller-manager works: it creates
// ServiceAccounts in kube-system for its controllers, and one in every namespace.
func (r *remover) hasNamespaceController(ctx context.Context) bool {
	exists := func(namespace, name string) bool {
		answer, err := r.client.Send(ctx, client.HTTPRequest{Method: http.MethodGet, Path: "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + name})
		return err != nil || answer.Allowed() || answer.Status.Code == http.StatusForbidden
	}
	return exists(metav1.NamespaceSystem, "namespace-controller") || exists(metav1.NamespaceDefault, "default")
}

// notGone adds what is left to the error of a removal that timed out.
func notGone(err error, objects []client.Object) error {
	if !errors.Is(err, framework.ErrTimeout) || len(objects) == 0 {
		return err
	}
	left := make([]string, 0, len(objects))
	for _, o := range objects {
		left = append(left, o.String())
	}
	slices.Sort(left)
	more := ""
	if len(left) > 5 {
		left, more = left[:5], fmt.Sprintf(" and %d more", len(left)-5)
	}
	return fmt.Errorf("wait until everything is removed: %w: these objects still exist: %s%s: they have a finalizer, or wait for the namespace controller; `admissiontest cleanup` removes them later", err, strings.Join(left, ", "), more)
}

// automanaged is a label of APIServices that kube-apiserver itself creates and deletes (k8s.io/kube-aggregator).
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// owned returns the cluster-scoped objects of a resource that belong to a selection. A label alone says nothing: every
// client can set it, on the object of another client too. A resource that may not be listed has none: the run could not
// have created them.
func (r *remover) owned(ctx context.Context, res client.Resource, which selection) ([]client.Object, error) {
	list, err := r.client.List(ctx, res, "", metav1.ListOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for i := range list.Items {
		item := &list.Items[i]
		run, labelled := item.Labels[RunLabel]
		mine := slices.ContainsFunc(which.runs, func(run string) bool { return isOf(item, run) })
		if labelled { // the namespace of a relay has no prefix
			mine = which.labelled(run) && (runid.Has(item.Name, run) || isOf(item, run))
		}
		// An automanaged APIService goes with its CustomResourceDefinition.
		if mine && item.Labels[automanaged] == "" && (item.Labels[LastLabel] != "") == which.last {
			objects = append(objects, client.Object{Resource: res, Name: item.Name, UID: item.UID})
		}
	}
	return objects, nil
}

// isOf reports whether a run created an object: its name has the ID of the run, which no other client could know before,
// or the run is a field manager of it.
func isOf(item metav1.Object, run string) bool {
	return runid.Has(item.GetName(), runid.Prefix(run)) || install.ManagerOf(item) == run
}

// cleanup removes what runs left that are not alive: see Cleanup.
func (r *remover) cleanup(ctx context.Context, options CleanupOptions) ([]string, error) {
	signs, err := runs(ctx, r.client)
	if apierrors.IsForbidden(err) {
		r.progress("cannot find out which runs are alive: the user has no right to list configmaps")
		err = nil
	}
	if err != nil {
		return nil, err
	}
	for id, run := range signs {
		switch {
		case !run.alive():
		case id == options.Run:
			return nil, fmt.Errorf("remove what run %s left: the run is alive: stop it, or wait %s if it was killed", run, aliveFor)
		case options.Run == "":
			r.progress(fmt.Sprintf("ignoring run %s, which is alive", run))
		}
	}
	which := selection{labelled: func(run string) bool {
		return (options.Run == "" || run == options.Run) && !signs[run].alive()
	}}
	if which.runs, err = r.runsOf(ctx, signs); err != nil {
		return nil, err
	}
	which.runs = slices.DeleteFunc(which.runs, func(run string) bool { return !which.labelled(run) })
	found, err := r.found(ctx, which)
	if err != nil || len(found) == 0 || options.DryRun {
		return found, err
	}
	return found, r.removeAll(ctx, which)
}

// found returns the cluster-scoped objects of a selection.
func (r *remover) found(ctx context.Context, which selection) ([]string, error) {
	var found []string
	for _, which.last = range []bool{false, true} {
		_, objects, err := r.round(ctx, r.client.Resources.Deletable(false), which, false)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			found = append(found, o.Key())
		}
	}
	return found, nil
}

// runsOf returns the runs that have a sign or a namespace.
func (r *remover) runsOf(ctx context.Context, signs map[string]runState) ([]string, error) {
	all := slices.Collect(maps.Keys(signs))
	list, err := r.client.List(ctx, client.Namespace("").Resource, "", metav1.ListOptions{LabelSelector: RunLabel})
	if err != nil {
		if apierrors.IsForbidden(err) {
			err = nil
		}
		return all, err
	}
	for _, item := range list.Items {
		if run := item.Labels[RunLabel]; run != "" { // an API server can ignore selectors
			all = append(all, run)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// CleanupOptions configure Cleanup. The zero value removes what every run left that is
// not alive.
type CleanupOptions struct {
	// Run is the ID of the only run to remove. Empty means all.
	Run string
	// DryRun finds objects and removes nothing.
	DryRun bool
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Cleanup removes everything that runs left on a cluster, and waits until it is gone. It
// returns the objects that it found: RESOURCE.GROUP/NAME, or
// RESOURCE.GROUP/NAMESPACE/NAME. Runs that are alive are passed over; to name one is an
// error. The error also names what is left.
func Cleanup(ctx context.Context, config *rest.Config, options CleanupOptions) ([]string, error) {
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Version(ctx); err != nil {
		return nil, err
	}
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	return (&remover{client: c, progress: options.Progress}).cleanup(ctx, options)
}

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
