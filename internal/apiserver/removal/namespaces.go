package removal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// The time to wait for the namespace controller to remove another namespace before
// helping it: the first time, when what kept it from working may just have been removed,
// and later.
const (
	firstQuietTime = 500 * time.Millisecond
	quietTime      = 5 * time.Second
)

func namespaces() client.Resource {
	return client.Resource{GroupVersionResource: client.Namespaces()}
}

// removeNamespaces deletes the namespaces of a selection, and what is in
// them. It does not wait until they are gone.
func (r *Remover) removeNamespaces(ctx context.Context, which selection, created []client.Resource) error {
	objects, err := r.owned(ctx, namespaces(), which)
	if err != nil || len(objects) == 0 {
		return err
	}
	r.Progress(fmt.Sprintf("removing %d namespaces", len(objects)))
	err = forEach(objects, func(o client.Object) error {
		return r.whileRefused(ctx, func() error { return r.Client.Delete(ctx, o) })
	})
	state, failed := r.empty(ctx, objects)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	created = slices.DeleteFunc(slices.Clone(created), func(res client.Resource) bool { return state.notListed[res.GroupResource()] })
	return forEach(objects, func(o client.Object) error {
		switch {
		case state.empty[o.Name]:
			return r.finalize(ctx, o) // the namespace controller takes seconds for each
		case state.complete:
			return nil
		default:
			return r.emptyOne(ctx, o.Name, created)
		}
	})
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

// emptyOne deletes the objects of some resources in one namespace.
func (r *Remover) emptyOne(ctx context.Context, namespace string, resources []client.Resource) error {
	for _, res := range resources {
		list, err := r.Client.List(ctx, res, namespace, metav1.ListOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return err
		}
		one := content{namespace: namespace, resource: res}
		for _, item := range list.Items {
			one.add(item)
		}
		if len(list.Items) > 0 {
			if err := r.deleteContent(ctx, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitForNamespaces waits until the namespaces are gone. A server without
// kube-controller-manager has no namespace controller: there it finalizes them. On
// others it only finalizes namespaces that are known to be empty, because objects in a
// namespace that is gone stay in storage.
func (r *Remover) waitForNamespaces(ctx context.Context, which selection) error {
	count, since, quiet := -1, time.Now(), firstQuietTime
	var queue deleted
	find := func() ([]client.Object, error) { return r.owned(ctx, namespaces(), which) }
	return r.waitUntilGone(ctx, find, func(left []client.Object) (works bool, err error) {
		if len(left) != count {
			count, since = len(left), time.Now()
			return false, nil
		}
		ready := left
		if r.hasNamespaceController(ctx) {
			if time.Since(since) < quiet {
				return false, nil
			}
			since, quiet = time.Now(), quietTime
			all, err := r.Client.List(ctx, namespaces(), "", metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			works = queue.someGone(all.Items)
			if ready, err = r.helpNamespaceController(ctx, left); err != nil {
				return works, err
			}
		}
		return works, forEach(ready, func(o client.Object) error { return r.finalize(ctx, o) })
	})
}

// deleted has the namespaces of all clients that were deleted and still there a moment ago. The
// namespace controller works on them one after another, for minutes on a busy cluster.
type deleted map[types.UID]bool

// someGone reports whether one of them is gone since, and notes those that are still there.
func (d *deleted) someGone(all []metav1.PartialObjectMetadata) bool {
	now := deleted{}
	for _, one := range all {
		if one.DeletionTimestamp != nil {
			now[one.UID] = true
		}
	}
	gone := false
	for uid := range *d {
		gone = gone || !now[uid]
	}
	*d = now
	return gone
}

// helpNamespaceController empties namespaces and removes finalizers of scenarios from
// those that are not empty. It returns those that are known to be empty.
func (r *Remover) helpNamespaceController(ctx context.Context, objects []client.Object) ([]client.Object, error) {
	state, err := r.empty(ctx, objects)
	if err != nil {
		return nil, err
	}
	var ready []client.Object
	for _, o := range objects {
		if state.empty[o.Name] {
			ready = append(ready, o)
		} else if err := r.keepKubernetesFinalizer(ctx, o); err != nil {
			return nil, err
		}
	}
	return ready, nil
}

// hasNamespaceController reports whether kube-controller-manager works: it creates
// ServiceAccounts in kube-system for its controllers, and one in every namespace.
func (r *Remover) hasNamespaceController(ctx context.Context) bool {
	exists := func(namespace, name string) bool {
		answer, err := r.Client.Send(ctx, client.HTTPRequest{Method: http.MethodGet, Path: "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + name})
		return err != nil || answer.Allowed() || answer.Status.Code == http.StatusForbidden
	}
	return exists(metav1.NamespaceSystem, "namespace-controller") || exists(metav1.NamespaceDefault, "default")
}

// keepKubernetesFinalizer removes all finalizers of a namespace except that of the
// namespace controller.
func (r *Remover) keepKubernetesFinalizer(ctx context.Context, o client.Object) error {
	found, err := r.Client.Get(ctx, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	all, _, _ := unstructured.NestedStringSlice(found.Object, "spec", "finalizers")
	kept := slices.DeleteFunc(slices.Clone(all), func(finalizer string) bool { return finalizer != "kubernetes" })
	if len(kept) == len(all) {
		return nil
	}
	return r.finalize(ctx, o, kept...)
}

// finalize replaces the finalizers of a namespace.
func (r *Remover) finalize(ctx context.Context, o client.Object, finalizers ...string) error {
	list := make([]any, 0, len(finalizers))
	for _, finalizer := range finalizers {
		list = append(list, finalizer)
	}
	_, err := r.Client.Update(ctx, o, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.Name, "uid": string(o.UID)}, "spec": map[string]any{"finalizers": list},
	}, "finalize")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// recreateNamespaces creates again the namespaces of wanted runs that are gone but have
// objects: an object in a namespace that does not exist
// cannot be changed, so its finalizers cannot be removed. Scenarios about missing
// namespaces have such objects.
func (r *Remover) recreateNamespaces(ctx context.Context, wanted func(run string) bool, resources []client.Resource) error {
	found, err := r.list(ctx, resources, func(namespace string) bool {
		of, ok := runid.OfNamespace(namespace)
		return ok && wanted(of)
	})
	if err != nil || len(found.contents) == 0 {
		return err
	}
	existing, err := r.Client.List(ctx, namespaces(), "", metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, one := range found.contents {
		if slices.ContainsFunc(existing.Items, func(item metav1.PartialObjectMetadata) bool { return item.Name == one.namespace }) {
			continue // it is removed by its label, or belongs to another client
		}
		of, _ := runid.OfNamespace(one.namespace)
		labels := map[string]any{install.RunLabel: of, install.ScenarioLabel: one.namespace}
		_, err := r.Client.Create(ctx, client.Namespace(one.namespace), map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": one.namespace, "labels": labels},
		})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("remove objects in namespace %s, which does not exist: %w", one.namespace, err)
		}
	}
	return nil
}
