package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// parallel limits the number of concurrent requests, and parallelLists that of resources
// which are removed at the same time.
const (
	parallel      = 16
	parallelLists = 4
)

// goneLimit is how long to wait until something is gone: an object of the run, or a deleted
// namespace of any client. waitLimit is how long to wait in all: a busy namespace controller takes
// seconds for each namespace.
const (
	goneLimit = 170 * time.Second
	waitLimit = 29 * time.Minute
)

// touches is how often a CustomResourceDefinition that was deleted is touched within goneLimit.
const touches = 17

const customResourceDefinitions = "customresourcedefinitions"

// Remover removes what runs created. The exported fields are required.
type Remover struct {
	Client *client.Client
	// Progress receives a line for each longer action.
	Progress func(string)

	warned    sync.Map      // the objects that passOver has reported
	refused   atomic.Bool   // an object was refused for as long as is worth waiting
	goneLimit time.Duration // replaces goneLimit in tests
}

func (r *Remover) limit() time.Duration { return cmp.Or(r.goneLimit, goneLimit) }

// Selector returns the label selector of what a run created, or of what any run
// created if run is empty.
func Selector(run string) string {
	if run == "" {
		return install.RunLabel
	}
	return install.RunLabel + "=" + run
}

// selection says which objects belong to runs.
type selection struct {
	// labels is the label selector of what has the labels of a run: webhook configurations, policies, and
	// the namespaces of scenarios.
	labels string
	// runs are the runs whose other objects are selected, which have no labels.
	runs []string
}

// RemoveScenarios removes everything that the scenarios of a run created, and waits
// until it is gone. The error names what is left.
func (r *Remover) RemoveScenarios(ctx context.Context, run string) error {
	created := r.Client.Resources.Stored(true)
	// Without the namespace of the relay: the Hooks behind it convert custom resources
	// until these are removed.
	err := r.recreateNamespaces(ctx, func(other string) bool { return other == run }, created)
	return errors.Join(err, r.remove(ctx, selection{Selector(run) + "," + install.ScenarioLabel, []string{run}}, created))
}

// RemoveSign removes the sign of a run, after everything else.
func (r *Remover) RemoveSign(ctx context.Context, run string) error {
	which := selection{labels: install.RunLabel + "=" + run + "," + signLabel}
	if err := r.removeNamespaces(ctx, which, []client.Resource{configMaps()}); err != nil {
		return err
	}
	return r.waitForNamespaces(ctx, which)
}

// remove removes the cluster-scoped objects of a selection, namespaces included. What cannot be removed does not keep
// the rest.
func (r *Remover) remove(ctx context.Context, which selection, created []client.Resource) error {
	r.Progress("removing webhook configurations, policies and other cluster-scoped objects")
	var ranks [install.Ranks][]client.Resource
	for _, res := range r.Client.Resources.Deletable(false) {
		if rank := install.RemovalRank(res); res.GroupVersionResource != client.Namespaces() {
			ranks[rank] = append(ranks[rank], res)
		}
	}
	// What decides about requests first; and namespaces before CustomResourceDefinitions,
	// whose deletion waits for their objects.
	var errs []error
	for _, rank := range []int{install.RankBindings, install.RankPolicies, install.RankWebhooks} {
		_, err := r.removeObjects(ctx, ranks[rank], which)
		errs = append(errs, err)
	}
	errs = append(errs, r.removeNamespaces(ctx, which, created))
	removed, err := r.removeObjects(ctx, ranks[install.RankOthers], which)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	return errors.Join(r.waitForNamespaces(ctx, which), r.waitForObjects(ctx, removed, which))
}

// removeObjects deletes the cluster-scoped objects of some resources and returns the
// resources that had objects.
func (r *Remover) removeObjects(ctx context.Context, list []client.Resource, which selection) ([]client.Resource, error) {
	found := make([]bool, len(list))
	var g errgroup.Group
	g.SetLimit(parallelLists)
	for i, res := range list {
		g.Go(func() error {
			objects, err := r.owned(ctx, res, which)
			if err != nil || len(objects) == 0 {
				return err
			}
			found[i] = true
			return forEach(objects, func(o client.Object) error { return r.removeObject(ctx, o) })
		})
	}
	err := g.Wait()
	var had []client.Resource
	for i, res := range list {
		if found[i] {
			had = append(had, res)
		}
	}
	return had, err
}

// removeObject deletes one object, and removes its finalizers if it still exists.
func (r *Remover) removeObject(ctx context.Context, o client.Object) error {
	if err := r.whileRefused(ctx, func() error { return r.Client.Delete(ctx, o) }); err != nil {
		return err
	}
	return r.removeFinalizers(ctx, o)
}

// whileRefused is client.WhileRefused until it was in vain once: what refuses one object refuses the others too.
func (r *Remover) whileRefused(ctx context.Context, request func() error) error {
	if r.refused.Load() {
		return request()
	}
	err := client.WhileRefused(ctx, request)
	r.refused.CompareAndSwap(false, err != nil)
	return err
}

// removeFinalizers removes the finalizers of an object that was deleted. A
// CustomResourceDefinition keeps its finalizer: the API server removes it after its
// objects.
func (r *Remover) removeFinalizers(ctx context.Context, o client.Object) error {
	if o.Resource.Resource == customResourceDefinitions {
		return nil
	}
	err := r.Client.RemoveFinalizers(ctx, o)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err) {
		return nil // the wait for the object shows whether it is gone
	}
	return err
}

// waitForObjects waits until the cluster-scoped objects of some resources are gone. It touches
// CustomResourceDefinitions: where several API servers delete the objects of one, all of them can wait for its next
// change (docs/findings.md).
func (r *Remover) waitForObjects(ctx context.Context, list []client.Resource, which selection) error {
	touched := time.Now()
	return r.waitUntilGone(ctx, func() ([]client.Object, error) {
		var left []client.Object
		for _, res := range list {
			objects, err := r.owned(ctx, res, which)
			if err != nil {
				return nil, err
			}
			left = append(left, objects...)
		}
		return left, nil
	}, func(left []client.Object) (bool, error) {
		if time.Since(touched) < r.limit()/touches {
			return false, nil
		}
		touched = time.Now()
		return false, forEach(left, func(o client.Object) error {
			if o.Resource.Resource == customResourceDefinitions {
				_ = r.Client.Touch(ctx, o) // the wait shows whether it is gone
			}
			return nil
		})
	})
}

// waitUntilGone waits until find returns no objects. After each find it calls help with the objects
// that are left. Help reports whether the cluster still works on their removal. If the cluster does not,
// and no object is removed for some time, waitUntilGone returns an error that names the objects.
func (r *Remover) waitUntilGone(ctx context.Context, find func() ([]client.Object, error), help func(left []client.Object) (works bool, err error)) error {
	var left []client.Object
	fewest, idle, last := -1, time.Duration(0), time.Now()
	err := client.Poll(ctx, client.Later, waitLimit, func() (_ bool, err error) {
		if left, err = find(); err != nil || len(left) == 0 {
			return err == nil, err
		}
		// This process can have been paused.
		idle, last = idle+min(time.Since(last), r.limit()/10), time.Now()
		if fewest < 0 || len(left) < fewest {
			fewest, idle = len(left), 0
		}
		works, err := help(left)
		if works {
			idle = 0
		}
		if err == nil && idle > r.limit() {
			err = fmt.Errorf("%w: no object was removed for %s", framework.ErrTimeout, r.limit())
		}
		return false, err
	})
	return notGone(err, left)
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

// owned returns the cluster-scoped objects of a resource that belong to the runs of a selection: those that a run created,
// by their names or field managers. A label alone says nothing: every client can set it, on the object of another client
// too. A resource that may not be listed has none: the run could not have created them.
func (r *Remover) owned(ctx context.Context, res client.Resource, which selection) ([]client.Object, error) {
	selector, err := labels.Parse(which.labels)
	if err != nil {
		return nil, err
	}
	list, err := r.Client.List(ctx, res, "", metav1.ListOptions{})
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
		run, labelled := item.Labels[install.RunLabel]
		switch {
		case item.Labels[automanaged] != "": // an APIService of a CustomResourceDefinition, with which it goes
		case labelled && !selector.Matches(labels.Set(item.Labels)):
		case labelled && !runid.Has(item.Name, run) && !isOf(item, run): // the namespace of a relay has no prefix
			r.passOver(o, run)
		case labelled || slices.ContainsFunc(which.runs, func(run string) bool { return isOf(item, run) }):
			objects = append(objects, o)
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
func (r *Remover) passOver(o client.Object, run string) {
	if _, known := r.warned.LoadOrStore(o.Key(), true); !known {
		r.Progress(fmt.Sprintf("not removed: %s has the label of run %s, but the run did not create it: remove the label %s", o, run, install.RunLabel))
	}
}
