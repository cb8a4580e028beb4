package rights

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
)

func texts(t *testing.T, required Required) []string {
	t.Helper()
	var out []string
	for _, right := range required.Scenarios {
		if slices.Contains([]string{"create", "impersonate", "use"}, right.Verb) {
			out = append(out, right.String())
		}
	}
	return out
}

func TestOf(t *testing.T) {
	definition := create("apiextensions.k8s.io", "v1", "CustomResourceDefinition", map[string]any{"spec": map[string]any{
		"group": "a.$(run).example.com", "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "kind": "Gadget"},
		"versions": []any{map[string]any{"name": "v1", "served": true}},
	}})
	named := create("", "v1", "ConfigMap", nil)
	named.User = &framework.User{Name: "a", Groups: []string{"g-$(id)", "g"}}
	role := create("rbac.authorization.k8s.io", "v1", "ClusterRole", map[string]any{"rules": []any{
		map[string]any{"verbs": []any{"use"}, "nonResourceURLs": []any{"/x/$(id)"}},
		map[string]any{"verbs": []any{"create"}, "apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{"covered"}},
	}})
	for name, test := range map[string]struct {
		requests []framework.Request
		want     []string
		unknown  []schema.GroupVersionKind
	}{
		"nothing":                   {},
		"ConfigMaps are in Run":     {requests: []framework.Request{create("", "v1", "ConfigMap", nil)}},
		"a group with placeholder":  {requests: []framework.Request{definition, create("a.$(run).example.com", "v1", "Gadget", nil)}, want: []string{"create gadgets.*", "create customresourcedefinitions.apiextensions.k8s.io"}},
		"listed and unlisted users": {requests: []framework.Request{named}, want: []string{"impersonate groups", "impersonate users a"}},
		"a role":                    {requests: []framework.Request{role}, want: []string{"create clusterroles.rbac.authorization.k8s.io", "use /x/*"}},
		"unknown":                   {requests: []framework.Request{create("example.com", "v1", "Gadget", nil)}, unknown: []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Gadget"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of([]Need{{Who: "s", Requests: test.requests}})
			if diff := cmp.Diff(test.want, texts(t, got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(test.unknown, got.Unknown); diff != "" {
				t.Errorf("unknown: -want +got\n%s", diff)
			}
			for _, right := range got.Run {
				if right.Resource == "secrets" || right.Verb == "impersonate" || right.Verb == "escalate" {
					t.Errorf("every run needs %s", right)
				}
			}
			if len(got.Run) < 20 {
				t.Errorf("%d rights of every run", len(got.Run))
			}
		})
	}
}

// A run that gives users their rights needs the rights to create roles, and those in the roles.
func TestOfGrants(t *testing.T) {
	t.Parallel()
	request := create("rbac.authorization.k8s.io", "v1", "RoleBinding", nil)
	request.User = &framework.User{Name: "jane"}
	got := Of([]Need{{Who: "s", Requests: []framework.Request{request}, Grants: true}})
	var all []string
	for _, right := range got.Scenarios {
		all = append(all, right.String())
	}
	for _, want := range []string{"create roles.rbac.authorization.k8s.io", "* rolebindings.rbac.authorization.k8s.io", "bind clusterroles.rbac.authorization.k8s.io"} {
		if !slices.Contains(all, want) {
			t.Errorf("got %v; want %s among them", all, want)
		}
	}
}
