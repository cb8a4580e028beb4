package cluster

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// orphanNamespace is how the namespaces of scenarios are called: at-RUN-001, and
// what follows in those that a scenario gives.
var orphanNamespace = regexp.MustCompile(`^at-([a-z0-9]+)-[0-9]{3}`)

// revive makes namespaces of a run again, or with no run of any, that are gone but
// have objects in them, so that they are removed with what is in them: an object
// without a namespace cannot be changed, and so not be rid of its finalizers.
// Scenarios about missing namespaces have such objects until their end.
func (t *Target) revive(ctx context.Context, run string, list []resource) error {
	found, err := t.contents(ctx, list, func(namespace string) bool {
		parts := orphanNamespace.FindStringSubmatch(namespace)
		return parts != nil && (run == "" || parts[1] == run)
	})
	if err != nil || len(found.contents) == 0 {
		return err
	}
	names, err := t.names(ctx, namespaceResource, "")
	if err != nil {
		return err
	}
	for _, one := range found.contents {
		if slices.Contains(names, one.namespace) {
			continue // it is somebody's, or removed by its label
		}
		labels := map[string]any{RunLabel: orphanNamespace.FindStringSubmatch(one.namespace)[1]}
		_, err := t.request(ctx, call{method: http.MethodPost, path: "/api/v1/namespaces", body: mustJSON(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": one.namespace, "labels": labels},
		})}, http.StatusConflict)
		if err != nil {
			return fmt.Errorf("remove objects in namespace %s, which is gone: %w", one.namespace, err)
		}
	}
	return nil
}

// touchedResources returns the resources that scenarios have namespaced objects of.
func (t *Target) touchedResources() map[schema.GroupVersionResource]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	touched := map[schema.GroupVersionResource]bool{}
	for _, o := range t.owners {
		for gvr := range o.touched {
			touched[gvr] = true
		}
	}
	return touched
}

// asResources is a set of resources as a list.
func asResources(set map[schema.GroupVersionResource]bool) []resource {
	var list []resource
	for gvr := range set {
		list = append(list, resource{GroupVersionResource: gvr, Namespaced: true, Deletable: true})
	}
	return list
}
