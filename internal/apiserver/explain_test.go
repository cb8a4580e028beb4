package apiserver_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// given returns a Sandbox in which the documents of a YAML text are installed, its Target, and its ID.
func given(t *testing.T, open bool, name, text string) (*apiserver.Target, target.Sandbox, string) {
	t.Helper()
	on, err := apiserver.New(t.Context(), apiserver.Options{Config: testserver.Config(t), Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = on.Close(t.Context()) })
	id := "at-" + on.RunID() + "-" + name
	sandbox, err := on.NewSandbox(t.Context(), apiserver.SandboxOptions{ID: id, Open: open})
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range readAll(t, text) {
		if err := sandbox.Install(t.Context(), manifest, nil); err != nil {
			t.Fatal(err)
		}
	}
	return on, sandbox, id
}

// TestExplain: what is known of an object after each kind of request. The policy compares a label of
// the new object, and one of the old object.
func TestExplain(t *testing.T) {
	ctx := t.Context()
	on, sandbox, id := given(t, false, "explain", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}
  validations:
  - expression: oldObject == null || oldObject.data.x != "first"
  - expression: object == null || object.data.x != "second"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Audit]}
`)
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
		{"update, dry run", func(r framework.Request) framework.Request {
			r.Verb, r.Object, r.DryRun = framework.VerbUpdate, configMap("second"), true
			return r
		}, []int{0, 1}, false},
		{"patch", func(r framework.Request) framework.Request {
			r.Verb, r.HTTP = framework.VerbPatch, framework.HTTP{Patch: []byte(`{"data":{"y":"1"}}`), PatchType: types.MergePatchType}
			return r
		}, nil, true},
		{"patch, dry run", func(r framework.Request) framework.Request {
			r.Verb, r.DryRun, r.HTTP = framework.VerbPatch, true, framework.HTTP{Patch: []byte(`{"data":{"x":"second"}}`), PatchType: types.MergePatchType}
			return r
		}, []int{0, 1}, false},
		{"delete, dry run", func(r framework.Request) framework.Request { r.Verb, r.DryRun = framework.VerbDelete, true; return r }, []int{0}, false},
		{"delete", func(r framework.Request) framework.Request { r.Verb = framework.VerbDelete; return r }, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := test.request(base)
			result, err := sandbox.Do(ctx, request)
			if err != nil || !result.Allowed() {
				t.Fatalf("%v %s", err, result.Status.Message)
			}
			findings, err := on.Explain(ctx, id, request, result)
			if err != nil || len(findings) != 1 {
				t.Fatalf("got %v, %v, want one finding", findings, err)
			}
			if f := findings[0]; f.Name != "p" || f.Binding != "b" || !slices.Equal(f.Validations, test.invalid) || (f.Effect == "unknown") != test.unknown {
				t.Errorf("got validations %v, want %v: %s", f.Validations, test.invalid, f)
			}
		})
	}
}

// TestExplainSubresources: the objects of subresources and of cluster-scoped kinds are known, and no
// text is about what narrowing adds.
func TestExplainSubresources(t *testing.T) {
	ctx := t.Context()
	on, sandbox, id := given(t, false, "subresources", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    objectSelector: {matchExpressions: [{key: other.example.com/x, operator: DoesNotExist}]}
    resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [pods/*, bindings, serviceaccounts/token, clusterroles, namespaces]}]
  validations:
  - expression: "oldObject == null || object == null || object.kind != 'Pod' || object.spec.?ephemeralContainers.orValue([]).size() == oldObject.spec.?ephemeralContainers.orValue([]).size()"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Audit]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: selected}
spec:
  matchConstraints:
    objectSelector: {matchLabels: {watched: "true"}}
    resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [pods/*, bindings, serviceaccounts/token, clusterroles, namespaces]}]
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: selected}
spec: {policyName: selected, validationActions: [Audit]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec: {containers: [{name: c, image: i}]}
`)
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	patch := func(kind schema.GroupVersionKind, name, subresource, body string) framework.Request {
		return framework.Request{Verb: framework.VerbPatch, Kind: kind, Namespace: id, Name: name, Subresource: subresource, DryRun: true, HTTP: framework.HTTP{Patch: []byte(body), PatchType: types.StrategicMergePatchType}}
	}
	create := func(kind schema.GroupVersionKind, name, subresource, manifest string) framework.Request {
		return framework.Request{Verb: framework.VerbCreate, Kind: kind, Namespace: id, Name: name, Subresource: subresource, Object: &unstructured.Unstructured{Object: readAll(t, manifest)[0]}}
	}
	for _, test := range []struct {
		name     string
		request  framework.Request
		invalid  []int
		selected string
	}{
		{"ephemeral container", patch(pod, "pod", "ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`), []int{0}, "the Pod has no labels"},
		{"binding", create(pod, "pod", "binding", "{apiVersion: v1, kind: Binding, metadata: {name: pod}, target: {apiVersion: v1, kind: Node, name: n}}"), nil, "the Binding has no labels"},
		{"token", create(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "default", "token", "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: default}, spec: {audiences: [a]}}"), nil, "the TokenRequest has no labels"},
		{"eviction", create(pod, "pod", "eviction", "{apiVersion: policy/v1, kind: Eviction, metadata: {name: pod, labels: {of: x}}}"), nil, `the objectSelector does not match the object: label "watched" is missing, want "true"`},
		{"cluster role", framework.Create(&unstructured.Unstructured{Object: readAll(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+id+", labels: {watched: 'no'}}, rules: []}")[0]}), nil, `label "watched" is "no", want "true"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := sandbox.Do(ctx, test.request)
			if err != nil {
				t.Fatal(err)
			}
			findings, err := on.Explain(ctx, id, test.request, result)
			if err != nil || len(findings) != 2 {
				t.Fatalf("got %v, %v, want two findings", findings, err)
			}
			if f := findings[0]; !slices.Equal(f.Validations, test.invalid) || f.Effect == reach.EffectUnknown {
				t.Errorf("got validations %v, want %v: %s", f.Validations, test.invalid, f)
			}
			if f := findings[1]; f.Reason != reach.ReasonObjectSelector || !strings.Contains(f.Text, test.selected) {
				t.Errorf("got %s, want %q", f, test.selected)
			}
			for _, f := range findings {
				if text := f.String(); strings.Contains(text, "admissiontest") || strings.Contains(text, id) {
					t.Errorf("the text is about narrowing: %s", text)
				}
			}
		})
	}
}

// TestExplainPatched: a policy that a request patches is explained as the author means it.
func TestExplainPatched(t *testing.T) {
	ctx := t.Context()
	on, sandbox, id := given(t, true, "patched", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {namespaceSelector: {matchLabels: {team: blue}}, resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [configmaps, clusterroles, namespaces]}]}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Audit]}
`)
	create := framework.Create(&unstructured.Unstructured{Object: readAll(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: "+id+"}}")[0]})
	explained := func() string {
		t.Helper()
		create.DryRun = true
		result, err := sandbox.Do(ctx, create)
		if err != nil || !result.Allowed() {
			t.Fatalf("%v %s", err, result.Status.Message)
		}
		findings, err := on.Explain(ctx, id, create, result)
		if err != nil || len(findings) != 1 {
			t.Fatalf("got %v, %v, want one finding", findings, err)
		}
		return findings[0].Text
	}
	if text := explained(); !strings.Contains(text, `label "team" is missing, want "blue"`) {
		t.Errorf("before the patch: %s", text)
	}
	patch := framework.Request{
		Verb: framework.VerbPatch, Kind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}, Name: "p",
		HTTP: framework.HTTP{Patch: []byte(`[{"op":"replace","path":"/spec/matchConstraints/namespaceSelector/matchLabels/team","value":"red"}]`), PatchType: types.JSONPatchType},
	}
	if result, err := sandbox.Do(ctx, patch); err != nil || !result.Allowed() {
		t.Fatalf("%v %s", err, result.Status.Message)
	}
	if text := explained(); !strings.Contains(text, `label "team" is missing, want "red"`) {
		t.Errorf("after the patch: %s", text)
	}
}

// readAll decodes the documents of a YAML text.
func readAll(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for document := range strings.SplitSeq(text, "\n---\n") {
		fields := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, fields)
	}
	return all
}
