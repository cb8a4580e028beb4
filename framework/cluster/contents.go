package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
// It is not whole where a list is too large.
func (t *Target) contents(ctx context.Context, list []resource, wanted func(namespace string) bool) (found inventory, err error) {
	found = inventory{whole: true, hidden: map[schema.GroupResource]bool{}}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removeParallel)
	for _, res := range list {
		g.Go(func() error {
			of, err := t.contentsOf(ctx, res, wanted)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, errHidden):
				found.hidden[res.GroupResource()] = true
				return nil
			case errors.Is(err, errTooLarge):
				found.whole = false
				return nil
			}
			found.contents = append(found.contents, of...)
			return err
		})
	}
	return found, g.Wait()
}

// inventory is what is known to be in namespaces.
type inventory struct {
	contents []content
	// whole is false where a list is too large to be read.
	whole bool
	// hidden are the resources that may not be listed, or cannot.
	hidden map[schema.GroupResource]bool
}

var (
	errHidden   = errors.New("the list is refused")
	errTooLarge = errors.New("the list is too large")
)

func (t *Target) contentsOf(ctx context.Context, res resource, wanted func(namespace string) bool) ([]content, error) {
	byNamespace := map[string]*content{}
	next := ""
	for range contentsPages {
		query := map[string][]string{"limit": {strconv.Itoa(contentsPage)}}
		if next != "" {
			query["continue"] = []string{next}
		}
		answer, err := t.request(ctx, call{method: http.MethodGet, path: urlOf(res, framework.Request{}, false), query: query, accept: partialList},
			http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusInternalServerError)
		switch {
		case err != nil:
			return nil, err
		case answer.Status.Code == http.StatusNotFound, answer.Status.Code == http.StatusMethodNotAllowed:
			return nil, nil // nothing of it is stored
		case answer.Status.Code == http.StatusForbidden, answer.Status.Code == http.StatusInternalServerError:
			return nil, errHidden // for custom resources: nobody is there any more to convert them
		case !answer.Allowed():
			return nil, errTooLarge // what was to be continued has expired
		}
		items, _ := nestedSlice(answer.Fields(), "items")
		for _, item := range items {
			object, _ := item.(map[string]any)
			namespace, _ := nestedString(object, "metadata", "namespace")
			if !wanted(namespace) {
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
	if next != "" {
		return nil, errTooLarge
	}
	return found, nil
}

// emptyRounds is how often the contents of namespaces are looked at.
const emptyRounds = 4

// emptied says what has become of namespaces that are being deleted.
type emptied struct {
	// empty are those that are known to be.
	empty map[string]bool
	// hidden are the resources that may not be listed, and so not deleted either.
	hidden map[schema.GroupResource]bool
	// done means that all that could be found is deleted.
	done bool
}

// emptyAll deletes what is in namespaces that are being deleted, so that nothing
// can be created in them any more.
func (t *Target) emptyAll(ctx context.Context, namespaces []string) (emptied, error) {
	out := emptied{empty: map[string]bool{}}
	wanted := map[string]bool{}
	for _, name := range namespaces {
		wanted[name] = true
	}
	for range emptyRounds {
		found, err := t.contents(ctx, t.resources.deletable(true), func(name string) bool { return wanted[name] })
		out.hidden = found.hidden
		if err != nil || !found.whole {
			return emptied{hidden: found.hidden}, err
		}
		if len(found.hidden) == 0 {
			for _, name := range namespaces {
				out.empty[name] = true
			}
		}
		for _, one := range found.contents {
			delete(out.empty, one.namespace)
		}
		if len(found.contents) == 0 {
			break
		}
		g, groupCtx := errgroup.WithContext(ctx)
		g.SetLimit(removeParallel)
		for _, one := range found.contents {
			g.Go(func() error { return t.emptyOf(groupCtx, one) })
		}
		if err := g.Wait(); err != nil {
			return emptied{hidden: found.hidden}, err
		}
		if len(found.hidden) > 0 {
			break // the namespace controller looks at the rest, and at this too
		}
	}
	out.done = len(out.hidden) > 0
	return out, nil
}

// emptyOf deletes the objects of one resource in one namespace.
func (t *Target) emptyOf(ctx context.Context, one content) error {
	path := urlOf(one.resource, framework.Request{Namespace: one.namespace}, false)
	mayNot := false
	err := untilAllowed(ctx, func() error {
		answer, err := t.request(ctx, call{method: http.MethodDelete, path: path, body: []byte(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`)},
			http.StatusNotFound, http.StatusMethodNotAllowed)
		// Admission may refuse for a moment, authorization does for good. The namespace
		// controller will do it.
		mayNot = answer.Status.Code == http.StatusForbidden && strings.Contains(answer.Status.Message, "cannot deletecollection resource")
		if mayNot {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("empty namespace %s of %s: %w", one.namespace, one.resource.Resource, err)
	}
	if mayNot {
		return nil
	}
	for _, name := range one.held {
		if err := t.unfinalize(ctx, one.resource, one.namespace, name); err != nil {
			return err
		}
	}
	return nil
}
