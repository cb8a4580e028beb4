package rules

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
)

// Only dry runs of the same request are sent as one: other objects, users and namespaces are other requests.
func TestByRequest(t *testing.T) {
	t.Parallel()
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	}
	dryRun := func(r framework.Request) *Case {
		r.DryRun = true
		return &Case{Request: r}
	}
	a, same := dryRun(framework.Create(object("a"))), dryRun(framework.Create(object("a")))
	all := []*Case{
		a, dryRun(framework.Create(object("b"))), same, dryRun(framework.Create(object("a")).WithUser(framework.User{Name: "u"})), dryRun(framework.Delete(object("a"))),
		{Request: framework.Create(object("a"))}, {Request: framework.Create(object("a"))},
	}
	got, err := byRequest(all)
	if err != nil || len(got) != len(all)-1 || !slices.Equal(got[0], []*Case{a, same}) {
		t.Errorf("got %d requests of %d cases, first %v, error %v", len(got), len(all), got[0], err)
	}
}
