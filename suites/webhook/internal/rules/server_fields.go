package rules

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// serverFieldRules returns the rule for metadata that belongs to the API server.
func serverFieldRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-FIELD-3", Name: "server-metadata-is-untouched", Level: framework.Must,
		Title:  "The patch leaves alone managedFields, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, name and namespace, and existing ownerReferences and finalizers.",
		Why:    "Without managedFields, server-side apply loses its owners. Other fields make the API server refuse the object, or garbage collection delete too much or too little.",
		Fix:    "Do not patch metadata as a whole. Add single labels, annotations and finalizers.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/96351", "https://github.com/kubernetes/kubernetes/pull/98074"},
		Check:  checkServerMetadata,
	}}
}

func checkServerMetadata(t *check.T) {
	mutating(t)
	eachObject(t, func(c check.Case, created check.Decision) {
		compareMetadata(t, c.String(), c.Request.Object, created.Object, "name", "namespace", "managedFields")
		t.Reached()
		r := updateOf(c.Request, c.Request.Object, addLabel)
		for _, object := range []map[string]any{r.Object, r.OldObject} {
			setServerMetadata(object)
		}
		if !t.Called(r) {
			return
		}
		if d, ok := t.Decide(r); ok && d.Response.Allowed {
			compareMetadata(t, check.Describe(r), r.Object, d.Object, "name", "namespace", "managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
			for _, list := range []string{"ownerReferences", "finalizers"} {
				was, _, _ := unstructured.NestedSlice(r.Object, "metadata", list)
				is, _, _ := unstructured.NestedSlice(d.Object, "metadata", list)
				for _, each := range was {
					if !slices.ContainsFunc(is, func(other any) bool { return reflect.DeepEqual(each, other) }) && identity(each) != "contract.example.com/foreign" {
						t.Errorf("%s: the patch removes or changes an entry of metadata.%s: %v%s", check.Describe(r), list, each, culprit(d))
					}
				}
			}
		}
	})
}

// setServerMetadata adds two managers, two owners and two finalizers.
func setServerMetadata(object map[string]any) {
	u := &unstructured.Unstructured{Object: object}
	managed, _, _ := unstructured.NestedSlice(object, "metadata", "managedFields")
	managed = append(managed, map[string]any{
		"manager": "other", "operation": "Apply", "apiVersion": u.GetAPIVersion(), "time": "2024-05-07T07:08:09Z",
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{".": map[string]any{}}}},
	})
	owner := func(name string, controller bool) any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "0f8fad5b-d9cb-469f-a165-7086772895" + name, "controller": controller}
	}
	for path, list := range map[string][]any{
		"managedFields": managed, "ownerReferences": {owner("aa", true), owner("bb", false)}, "finalizers": {"example.com/a", "example.com/b"},
	} {
		_ = unstructured.SetNestedSlice(object, list, "metadata", path) // it has metadata
	}
}

func compareMetadata(t *check.T, what string, was, is map[string]any, fields ...string) {
	for _, field := range fields {
		before, _, _ := unstructured.NestedFieldNoCopy(was, "metadata", field)
		after, _, _ := unstructured.NestedFieldNoCopy(is, "metadata", field)
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the patch changes metadata.%s: got %v, want %v", what, field, after, before)
		}
	}
}
