package install

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// What policies can read as parameters: their kinds, objects of these kinds, and what bindings name.
func TestParams(t *testing.T) {
	t.Parallel()
	verbs := metav1.Verbs{"list", "delete"}
	resources := client.NewResources()
	resources.Add(
		&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}, {Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: verbs},
		}},
		&metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "limits", Kind: "Limit", Verbs: verbs}}},
		&metav1.APIResourceList{GroupVersion: "authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "reviews", Kind: "Review"}}},
	)
	policy := func(apiVersion, kind string) map[string]any {
		return map[string]any{"spec": map[string]any{"paramKind": map[string]any{"apiVersion": apiVersion, "kind": kind}}}
	}
	binding := func(ref map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"policyName": "maps", "paramRef": ref}}
	}
	object := func(resource, namespace, name string) client.Object {
		res := client.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespaced: namespace != "", Deletable: true}
		if namespace == "" {
			res.Group = "example.com"
		}
		return client.Object{Resource: res, Namespace: namespace, Name: name}
	}
	i := &Installer{Client: &client.Client{Resources: resources}, Run: "r"}
	i.project = &Scope{ID: "at-r-installed", given: []given{
		{scope: "at-r-installed", kind: KindMutatingPolicy, name: "limits", manifest: policy("example.com/v1", "Limit")},
		{scope: "at-r-installed", kind: KindValidatingPolicy, name: "maps", manifest: policy("example.com/v1", "Limit")}, // no binding names it
	},
		objects: map[client.Object]bool{object("limits", "", "shared"): true, object("configmaps", "at-r-installed-x", "shared"): true}}
	scope := &Scope{ID: "at-r-001",
		given: []given{
			{kind: KindValidatingPolicy, name: "maps", manifest: policy("v1", "ConfigMap")},
			{kind: KindValidatingPolicy, name: "aps", manifest: policy("v1", "Secret")}, // no binding names it
			{kind: KindValidatingPolicy, name: "unknown", manifest: policy("example.com/v1", "Nothing")},
			{kind: KindValidatingPolicy, name: "unlisted", manifest: policy("authorization.k8s.io/v1", "Review")},
			{kind: KindValidatingPolicy, name: "without", manifest: map[string]any{"spec": map[string]any{}}},
			{kind: KindValidatingBinding, name: "named", manifest: binding(map[string]any{"name": "absent"})},
			{kind: KindValidatingBinding, name: "there", manifest: binding(map[string]any{"name": "absent", "namespace": "at-r-001-other"})},
			{kind: KindValidatingBinding, name: "foreign", manifest: binding(map[string]any{"name": "absent", "namespace": "kube-system"})},
			{kind: KindValidatingBinding, name: "selected", manifest: binding(map[string]any{"selector": map[string]any{}})},
		},
		objects: map[client.Object]bool{object("configmaps", "at-r-001", "given"): true, object("secrets", "at-r-001", "other"): true},
	}
	var got []string
	for _, p := range i.Params(scope) {
		got = append(got, p.Policy+" "+p.Kind.Kind+" "+p.Object.Namespace+"/"+p.Object.Name)
	}
	slices.Sort(got)
	want := []string{
		"MutatingAdmissionPolicy Limit /", "MutatingAdmissionPolicy Limit /shared",
		"ValidatingAdmissionPolicy ConfigMap at-r-001-other/absent", "ValidatingAdmissionPolicy ConfigMap at-r-001/",
		"ValidatingAdmissionPolicy ConfigMap at-r-001/absent", "ValidatingAdmissionPolicy ConfigMap at-r-001/given",
		"ValidatingAdmissionPolicy ConfigMap at-r-installed-x/shared", "ValidatingAdmissionPolicy Limit /",
		"ValidatingAdmissionPolicy Limit /shared", "ValidatingAdmissionPolicy Secret at-r-001/", "ValidatingAdmissionPolicy Secret at-r-001/other",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
