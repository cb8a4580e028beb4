package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// parallel limits the number of concurrent requests of a removal.
const parallel = 16

// The limits of the wait until what was deleted is gone: goneLimit without progress, waitLimit in all. Each helpInterval,
// what is left is deleted again.
const (
	goneLimit    = 170 * time.Second
	waitLimit    = 29 * time.Minute
	helpInterval = 5 * time.Second
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

	warned    sync.Map      // the objects that passOver has reported
	goneLimit time.Duration // replaces goneLimit in tests
}

// selection says which objects of which runs are removed.
type selection struct {
	// runs are the runs whose objects are found by names and field managers.
	runs []string
	// labelled reports whether objects with the label of a run belong to the selection.
	labelled func(run string) bool
	// scenarios is true without the namespaces of relays.
	scenarios bool
	// signs is true for the namespaces of signs, and for nothing else.
	signs bool
}

// removeRun removes what a run created, and its sign last. The namespace of a relay remains: the Hooks behind it convert
// custom resources until these are removed.
func (r *remover) removeRun(ctx context.Context, run string) error {
	return r.removeWithSigns(ctx, selection{runs: []string{run}, labelled: func(other string) bool { return other == run }, scenarios: true})
}

// removeWithSigns removes the objects of a selection, and then the signs of its runs, which say who ran them.
func (r *remover) removeWithSigns(ctx context.Context, which selection) error {
	r.progress("removing webhook configurations, policies, namespaces and other objects")
	if err := r.remove(ctx, which); err != nil {
		return err
	}
	which.signs, which.scenarios = true, false
	return r.remove(ctx, which)
}

// remove removes the objects of a selection.
func (r *remover) remove(ctx context.Context, which selection) error {
	resources := r.client.Resources.Deletable(false)
	slices.SortStableFunc(resources, func(a, b client.Resource) int { return removalOrder(a) - removalOrder(b) })
	var errs []error
	var deleted []client.Resource
	for _, res := range resources {
		objects, err := r.owned(ctx, res, which)
		if err == nil && len(objects) > 0 {
			deleted = append(deleted, res)
			err = r.deleteAll(ctx, objects)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.waitUntilGone(ctx, func() ([]client.Object, error) {
		var left []client.Object
		for _, res := range deleted {
			objects, err := r.owned(ctx, res, which)
			if err != nil {
				return nil, err
			}
			left = append(left, objects...)
		}
		return left, nil
	})
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

// deleteAll deletes objects with their finalizers, and what is in namespaces. An error does not keep the rest.
func (r *remover) deleteAll(ctx context.Context, objects []client.Object) error {
	err := forEach(objects, func(o client.Object) error {
		err := client.WhileRefused(ctx, func() error { return r.client.Delete(ctx, o) })
		// The API server removes the finalizer of a CustomResourceDefinition after its objects.
		if err != nil || o.Resource.Resource == "customresourcedefinitions" {
			return err
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
	if err != nil {
		return err
	}
	if len(objects) > 0 {
		if err := r.deleteAll(ctx, objects); err != nil {
			return err
		}
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
// more than one. Complete is false if some lists fail: then the namespace controller finds the rest.
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
	return objects, complete, g.Wait()
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

// waitUntilGone waits until find returns no objects. From time to time it empties namespaces again, and touches
// CustomResourceDefinitions: where several API servers delete the objects of one, all of them can wait for its next change
// (docs/findings.md). The error names the objects that remain.
func (r *remover) waitUntilGone(ctx context.Context, find func() ([]client.Object, error)) error {
	limit := cmp.Or(r.goneLimit, goneLimit)
	var left []client.Object
	fewest, idle, last, helped := -1, time.Duration(0), time.Now(), time.Now()
	err := client.Poll(ctx, client.Later, waitLimit, func() (_ bool, err error) {
		if left, err = find(); err != nil || len(left) == 0 {
			return err == nil, err
		}
		// This process can have been paused.
		idle, last = idle+min(time.Since(last), limit/10), time.Now()
		if fewest < 0 || len(left) < fewest {
			fewest, idle = len(left), 0
		}
		if time.Since(helped) > min(helpInterval, limit/10) {
			err, helped = r.help(ctx, left), time.Now()
		}
		if err == nil && idle > limit {
			err = fmt.Errorf("%w: no object was removed for %s", framework.ErrTimeout, limit)
		}
		return false, err
	})
	return notGone(err, left)
}

// help does what can end the wait for objects that were deleted.
func (r *remover) help(ctx context.Context, left []client.Object) error {
	var namespaces []client.Object
	for _, o := range left {
		switch {
		case o.Resource.GroupVersionResource == client.Namespaces():
			namespaces = append(namespaces, o)
		case o.Resource.Resource == "customresourcedefinitions":
			_ = r.client.Touch(ctx, o) // the wait shows whether it is gone
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	return r.empty(ctx, namespaces)
}

// notGone adds what is left to the error of a wait that timed out.
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
		o := client.Object{Resource: res, Name: item.Name, UID: item.UID}
		run, labelled := item.Labels[RunLabel]
		switch {
		case item.Labels[automanaged] != "": // an APIService of a CustomResourceDefinition, with which it goes
		case (item.Labels[signLabel] != "") != which.signs:
		case !labelled:
			if slices.ContainsFunc(which.runs, func(run string) bool { return isOf(item, run) }) {
				objects = append(objects, o)
			}
		case !which.labelled(run), which.scenarios && item.Labels[ScenarioLabel] == "":
		case runid.Has(item.Name, run) || isOf(item, run): // the namespace of a relay has no prefix
			objects = append(objects, o)
		default:
			r.passOver(o, run)
		}
	}
	return objects, nil
}

// isOf reports whether a run created an object: its name has the ID of the run, which no other client could know before,
// or the run is a field manager of it.
func isOf(item metav1.Object, run string) bool {
	return runid.Has(item.GetName(), runid.Prefix(run)) || install.ManagerOf(item) == run
}

// passOver reports once that an object is not removed.
func (r *remover) passOver(o client.Object, run string) {
	if _, known := r.warned.LoadOrStore(o.Key(), true); !known {
		r.progress(fmt.Sprintf("not removed: %s has the label of run %s, but the run did not create it: remove the label %s", o, run, RunLabel))
	}
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
	return found, r.removeWithSigns(ctx, which)
}

// found returns the cluster-scoped objects of a selection and of its signs.
func (r *remover) found(ctx context.Context, which selection) ([]string, error) {
	var found []string
	for _, which.signs = range []bool{false, true} {
		for _, res := range r.client.Resources.Deletable(false) {
			objects, err := r.owned(ctx, res, which)
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				found = append(found, o.Key())
			}
		}
	}
	return found, nil
}

// runsOf returns the runs that have a sign or a namespace.
func (r *remover) runsOf(ctx context.Context, signs map[string]runState) ([]string, error) {
	all := map[string]bool{}
	for id := range signs {
		all[id] = true
	}
	list, err := r.client.List(ctx, client.Namespace("").Resource, "", metav1.ListOptions{LabelSelector: RunLabel})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if err == nil {
		for _, item := range list.Items {
			if run := item.Labels[RunLabel]; run != "" { // an API server can ignore selectors
				all[run] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}
