package removal

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// The lists of objects in all namespaces: the size of a page, and the number of pages
// that are read. Longer lists are left to the namespace controller.
const (
	pageSize = 1000
	maxPages = 5
)

// content is the objects of one resource in one namespace.
type content struct {
	namespace string
	resource  client.Resource
	// names are the names of the objects.
	names []string
	// withFinalizers are the names of objects that have finalizers.
	withFinalizers []string
}

// add adds an object.
func (c *content) add(item metav1.PartialObjectMetadata) {
	c.names = append(c.names, item.Name)
	if len(item.Finalizers) > 0 {
		c.withFinalizers = append(c.withFinalizers, item.Name)
	}
}

// inventory is what was found in namespaces.
type inventory struct {
	contents []content
	// complete is false if a list was too long.
	complete bool
	// notListed are the resources that the user has no right to list, or whose list fails: for
	// instance custom resources whose conversion webhook no longer answers.
	notListed map[schema.GroupResource]bool
}

// list returns what is in the wanted namespaces. It reads one list of each resource in
// all namespaces, so that hundreds of namespaces cost no more than one.
func (r *Remover) list(ctx context.Context, resources []client.Resource, wanted func(namespace string) bool) (inventory, error) {
	found := inventory{complete: true, notListed: map[schema.GroupResource]bool{}}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, res := range resources {
		g.Go(func() error {
			contents, complete, err := r.listResource(ctx, res, wanted)
			if unreadable(err) {
				contents, complete, err = r.listOtherVersions(ctx, res, wanted, err)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsForbidden(err), unreadable(err):
				found.notListed[res.GroupResource()] = true
				return nil
			case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
				return nil // nothing of it is stored
			case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
				complete, err = false, nil // the list changed too much between two pages
			}
			found.complete = found.complete && complete
			found.contents = append(found.contents, contents...)
			return err
		})
	}
	return found, g.Wait()
}

// unreadable reports whether the API server cannot read what it stores. Its reason has a name since Kubernetes 1.37.
func unreadable(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsStoreReadError(err)
}

// listOtherVersions lists a resource in its other versions, until one can be listed: if
// the conversion webhook of custom resources no longer answers, they can be read in the
// version that they are stored in. It returns err if there is none.
func (r *Remover) listOtherVersions(ctx context.Context, res client.Resource, wanted func(namespace string) bool, err error) ([]content, bool, error) {
	for _, other := range r.Client.Resources.OtherVersions(res) {
		if contents, complete, failed := r.listResource(ctx, other, wanted); failed == nil {
			return contents, complete, nil
		}
	}
	return nil, false, err
}

func (r *Remover) listResource(ctx context.Context, res client.Resource, wanted func(namespace string) bool) (contents []content, complete bool, err error) {
	byNamespace := map[string]*content{}
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		page, err := r.Client.List(ctx, res, "", options)
		if err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			if !wanted(item.Namespace) {
				continue
			}
			if byNamespace[item.Namespace] == nil {
				byNamespace[item.Namespace] = &content{namespace: item.Namespace, resource: res}
			}
			byNamespace[item.Namespace].add(item)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			complete = true
			break
		}
	}
	for _, one := range byNamespace {
		contents = append(contents, *one)
	}
	return contents, complete, nil
}

// emptyRounds is how often the contents of namespaces are listed and deleted.
const emptyRounds = 4

// emptyState is the result of empty.
type emptyState struct {
	// empty are the namespaces that are known to be empty.
	empty map[string]bool
	// notListed is as in inventory.
	notListed map[schema.GroupResource]bool
	// complete is true if everything that could be listed was deleted.
	complete bool
}

// empty deletes the objects in namespaces that are being deleted, in which no objects
// can be created any more.
func (r *Remover) empty(ctx context.Context, namespaces []client.Object) (emptyState, error) {
	wanted := map[string]bool{}
	for _, o := range namespaces {
		wanted[o.Name] = true
	}
	state := emptyState{empty: map[string]bool{}}
	for range emptyRounds {
		found, err := r.list(ctx, r.Client.Resources.Deletable(true), func(name string) bool { return wanted[name] })
		state.notListed = found.notListed
		if err != nil || !found.complete {
			return emptyState{notListed: found.notListed}, err
		}
		if len(found.notListed) == 0 {
			for name := range wanted {
				state.empty[name] = true
			}
		}
		for _, one := range found.contents {
			delete(state.empty, one.namespace)
		}
		if len(found.contents) == 0 {
			break
		}
		g, groupCtx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for _, one := range found.contents {
			g.Go(func() error { return r.deleteContent(groupCtx, one) })
		}
		if err := g.Wait(); err != nil {
			return emptyState{notListed: found.notListed}, err
		}
		if len(found.notListed) > 0 {
			break // the namespace controller finds and removes the rest
		}
	}
	state.complete = len(state.notListed) > 0
	return state, nil
}

// deleteContent deletes the objects of one resource in one namespace.
func (r *Remover) deleteContent(ctx context.Context, one content) error {
	mayNot := false
	err := r.whileRefused(ctx, func() error {
		err := r.Client.DeleteCollection(ctx, one.resource, one.namespace, "")
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return r.deleteEach(ctx, one)
		}
		// Admission can refuse for a moment; authorization refuses for good. The namespace
		// controller deletes the objects then.
		if apierrors.IsForbidden(err) && !r.mayDelete(ctx, one) {
			mayNot = true
			return nil
		}
		return err
	})
	if err != nil || mayNot {
		return err
	}
	for _, name := range one.withFinalizers {
		if err := r.removeFinalizers(ctx, client.Object{Resource: one.resource, Namespace: one.namespace, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// deleteEach is for an API server that deletes no collections.
func (r *Remover) deleteEach(ctx context.Context, one content) error {
	for _, name := range one.names {
		if err := r.Client.Delete(ctx, client.Object{Resource: one.resource, Namespace: one.namespace, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Remover) mayDelete(ctx context.Context, one content) bool {
	missing, err := r.Client.Missing(ctx, []client.Right{{Verb: "deletecollection", Group: one.resource.Group, Resource: one.resource.Resource, Namespace: one.namespace}})
	return err != nil || len(missing) == 0
}
