package cluster

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
)

// Others returns the IDs of other runs that have webhook configurations or
// policies on the API server. However narrow these are, a request in a namespace
// that does not exist is refused by some of them: the API server finds no labels
// to match by.
func (t *Target) Others(ctx context.Context) ([]string, error) {
	var found []string
	for _, kind := range []string{kindMutatingWebhooks, kindValidatingWebhooks, kindValidatingPolicy, kindMutatingPolicy} {
		res, err := t.resources.of(schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kind})
		if err != nil {
			continue // not served
		}
		answer, err := t.request(ctx, call{
			method: http.MethodGet, path: urlOf(res, framework.Request{}, false), accept: partialList,
			query: map[string][]string{"labelSelector": {RunLabel + "," + RunLabel + "!=" + t.options.Run}},
		}, http.StatusForbidden, http.StatusNotFound)
		if err != nil {
			return nil, err
		}
		items, _ := nestedSlice(answer.Fields(), "items")
		for _, item := range items {
			object, _ := item.(map[string]any)
			if run, ok := nestedString(object, "metadata", "labels", RunLabel); ok {
				found = append(found, run)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
