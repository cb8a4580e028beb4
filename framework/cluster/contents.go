package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework"
)

// The lists that tell what is in namespaces: how much of a list is read at once,
// and in how many parts at most. What is larger is left to the cluster's own
// namespace controller.
const (
	contentsPage  = 1000
	contentsPages = 5
)

// partialList asks for names and labels only, where the server can.
const partialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// content is what there is of one resource in one namespace.
type content struct {
	namespace string
	resource  resource
	// held are the names of objects with finalizers.
	held []string
}

// contents looks for everything that is in some namespaces, with one list of
// each resource in all namespaces: hundreds of namespaces cost no more than one.
// It is not complete where a list is refused, or too large.
func (t *Target) contents(ctx context.Context, namespaces []string) (found []content, complete bool, err error) {
	wanted := map[string]bool{}
	for _, name := range namespaces {
		wanted[name] = true
	}
	complete = true
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removeParallel)
	for _, res := range t.resources.deletable(true) {
		g.Go(func() error {
			of, whole, err := t.contentsOf(ctx, res, wanted)
			mu.Lock()
			defer mu.Unlock()
			found, complete = append(found, of...), complete && whole
			return err
		})
	}
	err = g.Wait()
	return found, complete && err == nil, err
}

func (t *Target) contentsOf(ctx context.Context, res resource, wanted map[string]bool) ([]content, bool, error) {
	byNamespace := map[string]*content{}
	next := ""
	for range contentsPages {
		query := map[string][]string{"limit": {strconv.Itoa(contentsPage)}}
		if next != "" {
			query["continue"] = []string{next}
		}
		answer, err := t.request(ctx, call{method: http.MethodGet, path: urlOf(res, framework.Request{}, false), query: query, accept: partialList},
			http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone)
		switch {
		case err != nil:
			return nil, false, err
		case answer.Status.Code == http.StatusNotFound, answer.Status.Code == http.StatusMethodNotAllowed:
			return nil, true, nil // nothing of it is stored
		case !answer.Allowed():
			return nil, false, nil
		}
		items, _ := nestedSlice(answer.Fields(), "items")
		for _, item := range items {
			object, _ := item.(map[string]any)
			namespace, _ := nestedString(object, "metadata", "namespace")
			if !wanted[namespace] {
				continue
			}
			if byNamespace[namespace] == nil {
				byNamespace[namespace] = &content{namespace: namespace, resource: res}
			}
			if finalizers, _ := nestedSlice(object, "metadata", "finalizers"); len(finalizers) > 0 {
				name, _ := nestedString(object, "metadata", "name")
				byNamespace[namespace].held = append(byNamespace[namespace].held, name)
			}
		}
		if next, _ = nestedString(answer.Fields(), "metadata", "continue"); next == "" {
			break
		}
	}
	var found []content
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		found = append(found, *byNamespace[namespace])
	}
	return found, next == "", nil
}

// emptyRounds is how often the contents of namespaces are looked at.
const emptyRounds = 4

// emptyAll deletes what is in namespaces that are being deleted, so that nothing
// can be created in them any more. It returns those that are known to be empty.
func (t *Target) emptyAll(ctx context.Context, namespaces []string) (map[string]bool, error) {
	empty := map[string]bool{}
	for range emptyRounds {
		found, complete, err := t.contents(ctx, namespaces)
		if err != nil || !complete {
			return nil, err
		}
		for _, name := range namespaces {
			empty[name] = true
		}
		for _, one := range found {
			delete(empty, one.namespace)
		}
		if len(found) == 0 {
			break
		}
		g, groupCtx := errgroup.WithContext(ctx)
		g.SetLimit(removeParallel)
		for _, one := range found {
			g.Go(func() error { return t.emptyOf(groupCtx, one) })
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return empty, nil
}

// emptyOf deletes the objects of one resource in one namespace.
func (t *Target) emptyOf(ctx context.Context, one content) error {
	path := urlOf(one.resource, framework.Request{Namespace: one.namespace}, false)
	err := untilAllowed(ctx, func() error {
		_, err := t.request(ctx, call{method: http.MethodDelete, path: path, body: []byte(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`)},
			http.StatusNotFound, http.StatusMethodNotAllowed)
		return err
	})
	if err != nil {
		return fmt.Errorf("empty namespace %s of %s: %w", one.namespace, one.resource.Resource, err)
	}
	for _, name := range one.held {
		if err := t.unfinalize(ctx, one.resource, one.namespace, name); err != nil {
			return err
		}
	}
	return nil
}
