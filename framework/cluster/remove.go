package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// removeParallel bounds the requests in flight while removing.
const removeParallel = 16

// Remove deletes an object that Put installed.
func (t *Target) Remove(ctx context.Context, id string, gvk schema.GroupVersionKind, name string) error {
	res, err := t.resources.of(gvk)
	if err != nil {
		return err
	}
	ref := reference{resource: res, name: name}
	if governs(gvk) {
		ref.name = id + "-" + name
	}
	if res.Namespaced {
		ref.namespace = id
	}
	return t.deleteObject(ctx, ref)
}

// deleteObject deletes one object; that it is not there is fine.
func (t *Target) deleteObject(ctx context.Context, ref reference) error {
	request := framework.Request{Namespace: ref.namespace, Name: ref.name}
	_, err := t.request(ctx, call{method: http.MethodDelete, path: urlOf(ref.resource, request, true), body: mustJSON(map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "gracePeriodSeconds": 0,
	})}, http.StatusNotFound)
	return err
}

// insistLimit bounds how long a deletion is asked for again: policies are reread
// every second.
const insistLimit = 15 * time.Second

// insist deletes one object, and asks again while it is refused: what was
// deleted before it may still be in force for a moment, and refuse it.
func (t *Target) insist(ctx context.Context, ref reference) error {
	return untilAllowed(ctx, func() error { return t.deleteObject(ctx, ref) })
}

// untilAllowed repeats a request until it is carried out.
func untilAllowed(ctx context.Context, request func() error) error {
	var refused error
	err := poll(ctx, later, insistLimit, func() (bool, error) {
		refused = request()
		if errors.Is(refused, framework.ErrLost) {
			return false, refused
		}
		return refused == nil, nil
	})
	if err != nil && refused != nil {
		return refused
	}
	return err
}

// rank orders what decides about requests for its removal: a policy can refuse
// the removal of webhooks, and a binding is what puts a policy in force. Nothing
// can refuse the removal of bindings (Kubernetes exempts them).
func (r resource) rank() int {
	switch {
	case r.Group != admissionGroup:
		return 3
	case strings.HasSuffix(r.Resource, "bindings"):
		return 0
	case strings.HasSuffix(r.Resource, "policies"):
		return 1
	default:
		return 2
	}
}

// Disarm removes the webhook configurations and policies of a scenario, so that
// nothing of it decides about requests any more, and forgets its Hooks.
func (t *Target) Disarm(ctx context.Context, id string) error {
	t.mu.Lock()
	o := t.owners[id]
	var governing []reference
	if o != nil {
		governing, o.governing = o.governing, nil
	}
	t.mu.Unlock()
	slices.SortStableFunc(governing, func(a, b reference) int { return a.resource.rank() - b.resource.rank() })
	var errs []error
	for _, ref := range governing {
		errs = append(errs, t.insist(ctx, ref))
	}
	t.hooks.Forget(id)
	return errors.Join(errs...)
}

// removeAll removes everything that this Target created.
func (t *Target) removeAll(ctx context.Context) error {
	touched := t.touchedResources()
	if err := t.revive(ctx, t.options.Run, asResources(touched)); err != nil {
		return err
	}
	return t.sweep(ctx, RunLabel+"="+t.options.Run, touched)
}

// goneLimit bounds the wait for what was deleted to be gone: a
// CustomResourceDefinition goes after its objects.
const goneLimit = 30 * time.Second

// Cleanup removes everything that a run left on the cluster, and with an empty
// run what any run of ours left. It returns what it found, one line an object.
func Cleanup(ctx context.Context, options Options, run string) ([]string, error) {
	options.Disposable = true // Close must not look for a second time
	t, err := New(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close(ctx) }()
	selector := RunLabel
	if run != "" {
		selector += "=" + run
	}
	if err := t.revive(ctx, run, t.resources.deletable(true)); err != nil {
		return nil, err
	}
	before, err := t.left(ctx, selector)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	touched := map[schema.GroupVersionResource]bool{}
	for _, res := range t.resources.deletable(true) {
		touched[res.GroupVersionResource] = true
	}
	if err := t.sweep(ctx, selector, touched); err != nil {
		return before, err
	}
	var after []string
	err = poll(ctx, later, goneLimit, func() (bool, error) {
		after, err = t.left(ctx, selector)
		return len(after) == 0, err
	})
	if err != nil && !errors.Is(err, framework.ErrNotSettled) {
		return before, err
	}
	if len(after) > 0 {
		return before, fmt.Errorf("clean up: %d objects are still there, %s the first: something holds them (a finalizer, a terminating namespace); run cleanup again in a while", len(after), after[0])
	}
	return before, nil
}

// left lists cluster-scoped objects by label: ours are either cluster-scoped or
// in a namespace of ours.
func (t *Target) left(ctx context.Context, selector string) ([]string, error) {
	var found []string
	for _, res := range t.resources.deletable(false) {
		names, err := t.names(ctx, res, selector)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, res.GroupResource().String()+"/"+name)
		}
	}
	namespaces, err := t.names(ctx, namespaceResource, selector)
	for _, name := range namespaces {
		found = append(found, "namespaces/"+name)
	}
	return found, err
}

var namespaceResource = resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}} //nolint:gochecknoglobals // a constant that Go cannot write as one

// names lists the names of objects by label. A resource that may not be listed
// holds nothing of ours: we could not have created it.
func (t *Target) names(ctx context.Context, res resource, selector string) ([]string, error) {
	answer, err := t.request(ctx, call{method: http.MethodGet, path: urlOf(res, framework.Request{}, false), query: map[string][]string{"labelSelector": {selector}}},
		http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed)
	if err != nil {
		return nil, err
	}
	items, _ := nestedSlice(answer.Fields(), "items")
	var names []string
	for _, item := range items {
		object, _ := item.(map[string]any)
		if name, ok := nestedString(object, "metadata", "name"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// sweep removes what carries a label: first what decides about requests, then
// the rest, then the namespaces.
func (t *Target) sweep(ctx context.Context, selector string, touched map[schema.GroupVersionResource]bool) error {
	t.options.Progress("removing webhook configurations, policies and other cluster-scoped objects")
	var ranks [4][]resource
	for _, res := range t.resources.deletable(false) {
		ranks[res.rank()] = append(ranks[res.rank()], res)
	}
	for _, group := range ranks {
		if err := t.sweepResources(ctx, group, selector); err != nil {
			return err
		}
	}
	return t.sweepNamespaces(ctx, selector, touched)
}

func (t *Target) sweepResources(ctx context.Context, list []resource, selector string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removeParallel)
	for _, res := range list {
		g.Go(func() error {
			names, err := t.names(ctx, res, selector)
			if err != nil || len(names) == 0 {
				return err
			}
			if len(names) > 1 { // one request for all, where it is carried out; what is left is told below
				_, err := t.send(ctx, call{method: http.MethodDelete, path: urlOf(res, framework.Request{}, false), query: map[string][]string{"labelSelector": {selector}}})
				if err == nil {
					names, err = t.names(ctx, res, selector)
				}
				if err != nil {
					return fmt.Errorf("remove %s: %w", res.Resource, err)
				}
			}
			for _, name := range names {
				if err := t.insist(ctx, reference{resource: res, name: name}); err != nil {
					return fmt.Errorf("remove %s %s: %w", res.Resource, name, err)
				}
				if err := t.unfinalize(ctx, res, "", name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// unfinalize takes the finalizers off an object of ours that still stands after
// its deletion. CustomResourceDefinitions keep theirs: the API server itself
// removes their objects first.
func (t *Target) unfinalize(ctx context.Context, res resource, namespace, name string) error {
	if res.Resource == "customresourcedefinitions" {
		return nil
	}
	path := urlOf(res, framework.Request{Namespace: namespace, Name: name}, true)
	_, err := t.request(ctx, call{method: http.MethodPatch, path: path, contentType: "application/merge-patch+json", body: []byte(`{"metadata":{"finalizers":null}}`)},
		http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity)
	return err
}

// namespaceLimit bounds the wait for namespaces to vanish, namespaceQuiet the
// time without any vanishing after which those that are empty are helped along: an
// API server without kube-controller-manager has no namespace controller.
const (
	namespaceLimit = 170 * time.Second
	namespaceQuiet = 5 * time.Second
)

func (t *Target) sweepNamespaces(ctx context.Context, selector string, touched map[schema.GroupVersionResource]bool) error {
	names, err := t.names(ctx, namespaceResource, selector)
	if err != nil || len(names) == 0 {
		return err
	}
	t.options.Progress(fmt.Sprintf("removing %d namespaces", len(names)))
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(removeParallel)
	for _, name := range names {
		g.Go(func() error {
			if err := t.insist(groupCtx, reference{resource: namespaceResource, name: name}); err != nil {
				return fmt.Errorf("remove namespace %s: %w", name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	state, err := t.emptyAll(ctx, names)
	if err != nil {
		return err
	}
	for gvr := range touched {
		if state.hidden[gvr.GroupResource()] {
			delete(touched, gvr)
		}
	}
	g, groupCtx = errgroup.WithContext(ctx)
	g.SetLimit(removeParallel)
	for _, name := range names {
		g.Go(func() error {
			switch {
			case state.empty[name]: // as the namespace controller would, which takes seconds for each
				return t.finalize(groupCtx, name)
			case state.done:
				return nil
			default:
				return t.emptyNamespace(groupCtx, name, touched)
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return t.awaitNamespaces(ctx, selector)
}

// emptyNamespace deletes what a scenario created in a namespace.
func (t *Target) emptyNamespace(ctx context.Context, namespace string, touched map[schema.GroupVersionResource]bool) error {
	for gvr := range touched {
		res := resource{GroupVersionResource: gvr, Namespaced: true}
		path := urlOf(res, framework.Request{Namespace: namespace}, false)
		var answer framework.Result
		err := untilAllowed(ctx, func() (err error) {
			answer, err = t.request(ctx, call{method: http.MethodDelete, path: path, body: []byte(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`)},
				http.StatusNotFound, http.StatusMethodNotAllowed)
			return err
		})
		if err != nil {
			return fmt.Errorf("empty namespace %s of %s: %w", namespace, gvr.Resource, err)
		}
		items, _ := nestedSlice(answer.Fields(), "items")
		for _, item := range items {
			object, _ := item.(map[string]any)
			if _, held := nestedSlice(object, "metadata", "finalizers"); !held {
				continue
			}
			name, _ := nestedString(object, "metadata", "name")
			if err := t.unfinalize(ctx, res, namespace, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitNamespaces waits until the namespaces are gone. Where nobody removes
// them, it finalizes them as the namespace controller does; where somebody may,
// those only that are known to be empty, for what is in a namespace when it goes
// stays in the API server's storage for good.
func (t *Target) awaitNamespaces(ctx context.Context, selector string) error {
	count, since := -1, time.Now()
	return poll(ctx, later, namespaceLimit, func() (bool, error) {
		names, err := t.names(ctx, namespaceResource, selector)
		if err != nil || len(names) == 0 {
			return err == nil, err
		}
		if len(names) != count {
			count, since = len(names), time.Now()
			return false, nil
		}
		if t.controlled(ctx) {
			if time.Since(since) < namespaceQuiet {
				return false, nil
			}
			since = time.Now()
			state, err := t.emptyAll(ctx, names)
			if err != nil {
				return false, err
			}
			for _, name := range names {
				if !state.empty[name] {
					if err := t.release(ctx, name); err != nil {
						return false, err
					}
				}
			}
			names = slices.DeleteFunc(names, func(name string) bool { return !state.empty[name] })
		}
		for _, name := range names {
			if err := t.finalize(ctx, name); err != nil {
				return false, err
			}
		}
		return false, nil
	})
}

// controlled reports whether kube-controller-manager is at work: it writes a
// root CA ConfigMap and a ServiceAccount into every namespace, kube-system first.
func (t *Target) controlled(ctx context.Context) bool {
	answer, err := t.send(ctx, call{method: http.MethodGet, path: "/api/v1/namespaces/kube-system/serviceaccounts/namespace-controller"})
	if err == nil && answer.Allowed() {
		return true
	}
	answer, err = t.send(ctx, call{method: http.MethodGet, path: "/api/v1/namespaces/default/serviceaccounts/default"})
	return err != nil || answer.Allowed() || answer.Status.Code == http.StatusForbidden
}

// release takes a scenario's own finalizers off a namespace, and leaves that of the
// namespace controller.
func (t *Target) release(ctx context.Context, namespace string) error {
	answer, err := t.request(ctx, call{method: http.MethodGet, path: "/api/v1/namespaces/" + namespace}, http.StatusNotFound)
	if err != nil || !answer.Allowed() {
		return err
	}
	all, _ := nestedSlice(answer.Fields(), "spec", "finalizers")
	kept := slices.DeleteFunc(slices.Clone(all), func(finalizer any) bool { return finalizer != "kubernetes" })
	if len(kept) == len(all) {
		return nil
	}
	return t.finalize(ctx, namespace, kept...)
}

// finalize sets the finalizers that a namespace waits for.
func (t *Target) finalize(ctx context.Context, namespace string, finalizers ...any) error {
	if finalizers == nil {
		finalizers = []any{}
	}
	_, err := t.request(ctx, call{method: http.MethodPut, path: "/api/v1/namespaces/" + namespace + "/finalize", body: mustJSON(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}, "spec": map[string]any{"finalizers": finalizers},
	})}, http.StatusNotFound, http.StatusConflict)
	if err != nil {
		return fmt.Errorf("finalize namespace %s: %w", namespace, err)
	}
	return nil
}
