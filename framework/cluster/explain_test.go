package cluster_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// TestExplain: what is known of an object after each kind of request. The policy compares a label of
// the new object, and one of the old object.
func TestExplain(t *testing.T) {
	ctx := t.Context()
	target, err := cluster.New(ctx, cluster.Options{Config: testserver.Config(t), Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close(t.Context()) })
	id := "at-" + target.RunID() + "-explain"
	sandbox, err := target.NewSandbox(ctx, cluster.SandboxOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	rules := []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}}
	policy := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": rules},
			"validations": []any{
				map[string]any{"expression": `oldObject == null || oldObject.data.x != "first"`},
				map[string]any{"expression": `object == null || object.data.x != "second"`},
			},
		},
	}
	binding := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": "b"},
		"spec": map[string]any{"policyName": "p", "validationActions": []any{"Audit"}},
	}
	for _, manifest := range []map[string]any{policy, binding} {
		if err := sandbox.Install(ctx, manifest, nil); err != nil {
			t.Fatal(err)
		}
	}
	configMap := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": id}, "data": map[string]any{"x": value},
		}}
	}
	kind := configMap("").GroupVersionKind()
	base := framework.Request{Kind: kind, Namespace: id, Name: "c"}
	for _, test := range []struct {
		name    string
		request func(framework.Request) framework.Request
		invalid []int
		unknown bool
	}{
		{"create", func(r framework.Request) framework.Request {
			r.Verb, r.Object = framework.VerbCreate, configMap("first")
			return r
		}, nil, false},
		{"update", func(r framework.Request) framework.Request {
			r.Verb, r.Object = framework.VerbUpdate, configMap("second")
			return r
		}, []int{0, 1}, false},
		{"patch", func(r framework.Request) framework.Request {
			r.Verb, r.HTTP = framework.VerbPatch, framework.HTTP{Patch: []byte(`{"data":{"x":"first"}}`), PatchType: types.MergePatchType}
			return r
		}, nil, false},
		{"delete, dry run", func(r framework.Request) framework.Request { r.Verb, r.DryRun = framework.VerbDelete, true; return r }, []int{0}, false},
		{"delete", func(r framework.Request) framework.Request { r.Verb = framework.VerbDelete; return r }, nil, true},
	} {
		request := test.request(base)
		result, err := sandbox.Do(ctx, request)
		if err != nil || !result.Allowed() {
			t.Fatalf("%s: %v %s", test.name, err, result.Status.Message)
		}
		findings, err := target.Explain(ctx, id, request, result)
		if err != nil || len(findings) != 1 {
			t.Fatalf("%s: got %v, %v, want one finding", test.name, findings, err)
		}
		if f := findings[0]; f.Name != "p" || f.Binding != "b" || !slices.Equal(f.Validations, test.invalid) || (f.Effect == "unknown") != test.unknown {
			t.Errorf("%s: got validations %v, want %v: %s", test.name, f.Validations, test.invalid, f)
		}
	}
}
