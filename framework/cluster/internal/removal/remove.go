package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/install"
)

// parallel limits the number of concurrent requests.
const parallel = 16

// goneLimit limits the wait until what was deleted is gone.
const goneLimit = 170 * time.Second

// Remover removes what runs created. The exported fields are required.
type Remover struct {
	Client *client.Client
	// Progress receives a line for each longer action.
	Progress func(string)

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

// RemoveScenarios removes everything that the scenarios of a run created, and waits
// until it is gone. Created has the namespaced resources that namespaces can contain
// objects of, besides those that can be listed. The error names what is left.
func (r *Remover) RemoveScenarios(ctx context.Context, run string, created []client.Resource) error {
	// Without the namespace of the relay: the Hooks behind it convert custom resources
	// until these are removed.
	return r.remove(ctx, run, Selector(run)+","+install.ScenarioLabel, created)
}

func (r *Remover) remove(ctx context.Context, run, selector string, created []client.Resource) error {
	if err := r.recreateNamespaces(ctx, run, created); err != nil {
		return err
	}
	r.Progress("removing webhook configurations, policies and other cluster-scoped objects")
	var ranks [install.Ranks][]client.Resource
	for _, res := range r.Client.Resources.Deletable(false) {
		if rank := install.RemovalRank(res); res.GroupVersionResource != client.Namespaces() {
			ranks[rank] = append(ranks[rank], res)
		}
	}
	// What decides about requests first; and namespaces before CustomResourceDefinitions,
	// whose deletion waits for their objects.
	for _, rank := range []int{install.RankBindings, install.RankPolicies, install.RankWebhooks} {
		if _, err := r.removeObjects(ctx, ranks[rank], selector); err != nil {
			return err
		}
	}
	if err := r.removeNamespaces(ctx, selector, created); err != nil {
		return err
	}
	removed, err := r.removeObjects(ctx, ranks[install.RankOthers], selector)
	if err != nil {
		return err
	}
	if err := r.waitForNamespaces(ctx, selector); err != nil {
		return err
	}
	return r.waitForObjects(ctx, removed, selector)
}

// removeObjects deletes the cluster-scoped objects of some resources and returns the
// resources that had objects.
func (r *Remover) removeObjects(ctx context.Context, list []client.Resource, selector string) ([]client.Resource, error) {
	found := make([]bool, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, res := range list {
		g.Go(func() error {
			names, err := r.names(ctx, res, selector)
			if err != nil || len(names) == 0 {
				return err
			}
			found[i] = true
			if len(names) > 1 {
				// One request for all. What it does not delete is deleted below.
				if err := r.Client.DeleteCollection(ctx, res, "", selector); errors.Is(err, framework.ErrNoResponse) {
					return err
				}
				if names, err = r.names(ctx, res, selector); err != nil {
					return err
				}
			}
			for _, name := range names {
				if err := r.removeObject(ctx, client.Object{Resource: res, Name: name}); err != nil {
					return err
				}
			}
			return nil
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
	if err := client.WhileRefused(ctx, func() error { return r.Client.Delete(ctx, o) }); err != nil {
		return err
	}
	return r.removeFinalizers(ctx, o)
}

// removeFinalizers removes the finalizers of an object that was deleted. A
// CustomResourceDefinition keeps its finalizer: the API server removes it after its
// objects.
func (r *Remover) removeFinalizers(ctx context.Context, o client.Object) error {
	if o.Resource.Resource == "customresourcedefinitions" {
		return nil
	}
	err := r.Client.RemoveFinalizers(ctx, o)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil // the wait for the object shows whether it is gone
	}
	return err
}

// waitForObjects waits until the cluster-scoped objects of some resources are gone.
func (r *Remover) waitForObjects(ctx context.Context, list []client.Resource, selector string) error {
	var left []string
	err := client.Poll(ctx, client.Later, r.limit(), func() (bool, error) {
		left = nil
		for _, res := range list {
			names, err := r.names(ctx, res, selector)
			if err != nil {
				return false, err
			}
			for _, name := range names {
				left = append(left, client.Object{Resource: res, Name: name}.String())
			}
		}
		return len(left) == 0, nil
	})
	return notGone(err, left)
}

// notGone adds what is left to the error of a wait that timed out.
func notGone(err error, left []string) error {
	if !errors.Is(err, framework.ErrTimeout) || len(left) == 0 {
		return err
	}
	slices.Sort(left)
	more := ""
	if len(left) > 5 {
		left, more = left[:5], fmt.Sprintf(" and %d more", len(left)-5)
	}
	return fmt.Errorf("wait until everything is removed: %w: still there: %s%s: a finalizer or the namespace controller holds them; `admissiontest cleanup` removes them later", err, strings.Join(left, ", "), more)
}

// names returns the names of the objects of a resource that a label selector selects.
// A resource that may not be listed has none: the run could not have created them.
func (r *Remover) names(ctx context.Context, res client.Resource, selector string) ([]string, error) {
	list, err := r.Client.List(ctx, res, "", metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names, nil
}

// Left returns the cluster-scoped objects of a run, namespaces included, or of any run
// if run is empty. (Namespaced objects of a run are in its namespaces.)
func (r *Remover) Left(ctx context.Context, run string) ([]string, error) {
	var found []string
	for _, res := range r.Client.Resources.Deletable(false) {
		names, err := r.names(ctx, res, Selector(run))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, res.GroupResource().String()+"/"+name)
		}
	}
	namespaces, err := r.names(ctx, client.Resource{GroupVersionResource: client.Namespaces()}, Selector(run))
	for _, name := range namespaces {
		found = append(found, "namespaces/"+name)
	}
	return found, err
}

// Cleanup removes everything that a run left, or that any run left if run is empty, and
// waits until it is gone. It returns the objects that it found. The error names what is
// left.
func (r *Remover) Cleanup(ctx context.Context, run string) ([]string, error) {
	all := r.Client.Resources.Deletable(true)
	if err := r.recreateNamespaces(ctx, run, all); err != nil {
		return nil, err
	}
	found, err := r.Left(ctx, run)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found, r.remove(ctx, run, Selector(run), all)
}
