package install

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// What policies can read as parameters: their kinds, in the namespaces of the scenario, of its requests and of bindings.
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
	i := &Installer{Client: &client.Client{Resources: resources}, Run: "r", Shared: true}
	i.project = &Scope{ID: "at-r-installed", given: []given{{kind: KindMutatingPolicy, name: "limits", manifest: policy("example.com/v1", "Limit")}}}
	scope := &Scope{ID: "at-r-001", namespaces: []string{"at-r-001-second"},
		Requests: []framework.Request{{Namespace: "at-r-001"}, {Namespace: "default"}, {Namespace: "$(steps.a.name)"}},
		given: []given{
			{kind: KindValidatingPolicy, name: "maps", manifest: policy("v1", "ConfigMap")},
			{kind: KindValidatingPolicy, name: "unknown", manifest: policy("example.com/v1", "Nothing")},
			{kind: KindValidatingPolicy, name: "unlisted", manifest: policy("authorization.k8s.io/v1", "Review")},
			{kind: KindValidatingPolicy, name: "without", manifest: map[string]any{"spec": map[string]any{}}},
			{kind: KindValidatingBinding, name: "there", manifest: binding(map[string]any{"name": "absent", "namespace": "at-r-001-other"})},
			{kind: KindValidatingBinding, name: "foreign", manifest: binding(map[string]any{"name": "absent", "namespace": "kube-system"})},
			{kind: KindValidatingBinding, name: "selected", manifest: binding(map[string]any{"selector": map[string]any{}})},
		},
	}
	maps := []string{"ValidatingAdmissionPolicy ConfigMap at-r-001", "ValidatingAdmissionPolicy ConfigMap at-r-001-other", "ValidatingAdmissionPolicy ConfigMap at-r-001-second"}
	for shared, want := range map[bool][]string{true: maps, false: append(maps, "ValidatingAdmissionPolicy ConfigMap default", "ValidatingAdmissionPolicy ConfigMap kube-system")} {
		i.Shared = shared
		var got []string
		for _, p := range i.Params(scope) {
			got = append(got, p.Policy+" "+p.Kind.Kind+" "+p.Namespace)
		}
		slices.Sort(got)
		if diff := cmp.Diff(append([]string{"MutatingAdmissionPolicy Limit "}, want...), got); diff != "" {
			t.Errorf("shared %t: -want +got\n%s", shared, diff)
		}
	}
}
