package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func parsed(t *testing.T, texts ...string) []map[string]any {
	t.Helper()
	all := make([]map[string]any, len(texts))
	for i, text := range texts {
		if err := yaml.Unmarshal([]byte(text), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// crd returns a CustomResourceDefinition of a group with the maximum of a field, and a description
// of some length.
func crd(group string, maximum, length int) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, description: %[3]q, properties: {size: {type: integer, maximum: %[2]d}}}}
`, group, maximum, strings.Repeat("d", length))
}

// policy returns a policy that refuses the resources without a label, and its binding.
func policy(name, group, resources string) []string {
	return []string{fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%q], apiVersions: ["*"], resources: [%s], operations: [CREATE]}]}
  validations: [{expression: "'owner' in object.metadata.?labels.orValue({})", message: has no owner}]
`, name, group, resources), fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name)}
}

// shared returns a Target of a server that does not end with the run.
func shared(t *testing.T, run string) *Target {
	t.Helper()
	on, err := New(t.Context(), Options{Config: testserver.Config(t), Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func definitions(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// closeTarget closes a Target and checks that nothing is left of the run.
func closeTarget(t *testing.T, on *Target, config *rest.Config) {
	t.Helper()
	if err := on.Close(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := Cleanup(t.Context(), config, CleanupOptions{Run: on.RunID(), DryRun: true})
	if err != nil || len(found) > 0 {
		t.Errorf("left after Close: %v, %v", found, err)
	}
}

// installed installs manifests for a run and returns a Sandbox of it.
func installed(t *testing.T, on *Target, all []map[string]any) *Sandbox {
	t.Helper()
	if err := errors.Join(on.InstallForRun(t.Context(), all), on.WaitUntilEffective(t.Context(), all)); err != nil {
		t.Fatal(err)
	}
	return newSandbox(t, on, SandboxOptions{ID: "at-" + on.RunID() + "-00001"})
}

// What is installed for a run decides about the requests of each Sandbox, and about no others: not about
// objects of another client, nor about objects of the run itself.
func TestInstallForRun(t *testing.T) {
	on := shared(t, "project")
	texts := slices.Concat(policy("owner", "", "configmaps"), policy("namespaces", "", "namespaces"), // not on an API server with other clients
		policy("lease", "coordination.k8s.io", "leases"), policy("roles", "rbac.authorization.k8s.io", "clusterroles"))
	sandbox := installed(t, on, parsed(t, texts...))
	otherRun := newTarget(t, Options{Run: "otherproject"})
	newSandbox(t, otherRun, SandboxOptions{ID: "at-otherproject-00001"})
	const id = "at-project-00001"
	object := func(apiVersion, kind, namespace, name string, labels map[string]any) map[string]any {
		metadata := map[string]any{"name": name, "labels": labels}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	}
	owner := map[string]any{"owner": "me"}
	for _, one := range []struct {
		manifest map[string]any
		want     bool
	}{
		{object("v1", "ConfigMap", id, "a", owner), true},
		{object("v1", "ConfigMap", id, "b", nil), false},
		{object("coordination.k8s.io/v1", "Lease", id, "c", nil), false},
	} {
		t.Run(fmt.Sprintf("%s %t", one.manifest["kind"], one.want), func(t *testing.T) {
			result, err := sandbox.Do(t.Context(), requestOf(framework.VerbCreate, one.manifest))
			if err != nil || result.Allowed() != one.want {
				t.Errorf("create %v: allowed %t, %v; want %t", one.manifest, result.Allowed(), err, one.want)
			}
		})
	}
	for _, manifest := range []map[string]any{
		object("v1", "ConfigMap", "default", "project", nil),
		object("v1", "ConfigMap", "at-otherproject-00001", "project", nil),
		object("v1", "Namespace", "", "tenants-project", nil),
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "tenants-project", nil),
		object("coordination.k8s.io/v1", "Lease", "at-project-run", "other", nil),
	} {
		t.Run(fmt.Sprintf("another client's %s", manifest["kind"]), func(t *testing.T) {
			request := requestOf(framework.VerbCreate, manifest)
			request.DryRun = true
			result, err := on.Do(t.Context(), request)
			if err != nil || !result.Allowed() {
				t.Errorf("create %v as another client: %v, %v", manifest, result.Status, err)
			}
		})
	}
	closeTarget(t, on, testserver.Config(t))
}

// withParam makes a policy and its binding compare the object with a parameter.
func withParam(t *testing.T, of []map[string]any, paramKind map[string]any, expression string, ref map[string]any) {
	t.Helper()
	spec, _ := of[0]["spec"].(map[string]any)
	binding, _ := of[1]["spec"].(map[string]any)
	spec["paramKind"], spec["validations"] = paramKind, []any{map[string]any{"expression": expression}}
	ref["parameterNotFoundAction"] = "Deny"
	binding["paramRef"] = ref
}

// Bindings find the parameters that are installed, if no other clients use the API server.
func TestInstallForRunParams(t *testing.T) {
	// On a server that had a policy with params of this kind before, kube-apiserver does not find them:
	// see the notes of scenarios/vap/params-by-name.yaml.
	config := testserver.Own(t)
	on, err := New(t.Context(), Options{Config: config, Run: "params", Disposable: true, Served: true})
	if err != nil {
		t.Fatal(err)
	}
	namespaced, clusterScoped := parsed(t, policy("a", "", "configmaps")...), parsed(t, policy("b", "", "secrets")...)
	withParam(t, namespaced, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "object.data.owner == params.data.owner", map[string]any{"name": "limit", "namespace": "theirs"})
	withParam(t, clusterScoped, map[string]any{"apiVersion": "params.example.com/v1", "kind": "Widget"}, "object.metadata.name == 'with-' + string(params.size)", map[string]any{"name": "limit"})
	definition := strings.Replace(crd("params.example.com", 9, 1), "scope: Namespaced", "scope: Cluster", 1)
	sandbox := installed(t, on, append(append(namespaced, clusterScoped...), parsed(t, definition,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: limit, namespace: theirs}, data: {owner: "1"}}`,
		`{apiVersion: params.example.com/v1, kind: Widget, metadata: {name: limit}, size: 2}`)...))
	for kind, field := range map[string]string{"ConfigMap": "data", "Secret": "stringData"} {
		for _, owner := range []string{"1", "2"} {
			t.Run(kind+" of owner "+owner, func(t *testing.T) {
				result, err := sandbox.Do(t.Context(), requestOf(framework.VerbCreate, map[string]any{
					"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "with-" + owner, "namespace": "at-params-00001"}, field: map[string]any{"owner": owner},
				}))
				if want := (kind == "ConfigMap") == (owner == "1"); err != nil || result.Allowed() != want {
					t.Errorf("create %s of owner %s: %v, %v; want allowed %t", kind, owner, result.Status.Message, err, want)
				}
			})
		}
	}
	closeTarget(t, on, config)
}

// A CustomResourceDefinition of another client is used if it is the same, for the run or for a
// Sandbox, and it is not removed. One that differs is an error that names the difference.
func TestInstallForRunExistingDefinition(t *testing.T) {
	const name = "widgets.theirs.example.com"
	same := crd("theirs.example.com", 9, 1)
	before, err := definitions(t).Create(t.Context(), &unstructured.Unstructured{Object: parsed(t, same)[0]}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on := shared(t, "same")
	sandbox := installed(t, on, parsed(t, same))
	if err := sandbox.Install(t.Context(), parsed(t, same)[0], nil); err != nil {
		t.Errorf("a Sandbox that gives it: %v", err)
	}
	closeTarget(t, on, testserver.Config(t))

	on = shared(t, "differs")
	err = on.InstallForRun(t.Context(), parsed(t, append(policy("first", "", "configmaps"), crd("theirs.example.com", 10, 1))...))
	var failed *framework.ManifestError
	if !errors.As(err, &failed) || failed.Index != 2 || !errors.Is(err, install.ErrDiffers) ||
		!strings.Contains(err.Error(), "which differs: update it") {
		t.Errorf("got %v; want that it differs, at manifest 2", err)
	}
	closeTarget(t, on, testserver.Config(t))
	after, err := definitions(t).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() || len(after.GetLabels()) > 0 {
		t.Errorf("it did not survive as it was: %v", err)
	}
	if err := definitions(t).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// The CustomResourceDefinition of another run goes when that run ends. It can have 1 MB.
func TestInstallForRunDefinitionOfOtherRun(t *testing.T) {
	first, second := shared(t, "firstrun"), shared(t, "secondrun")
	definition := parsed(t, crd("runs.example.com", 9, 1_000_000))
	if err := first.InstallForRun(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	err := second.InstallForRun(t.Context(), definition)
	if !errors.Is(err, install.ErrDiffers) || !strings.Contains(err.Error(), "run firstrun created it") {
		t.Errorf("got %v", err)
	}
	closeTarget(t, second, testserver.Config(t))
	if _, err := definitions(t).Get(t.Context(), "widgets.runs.example.com", metav1.GetOptions{}); err != nil {
		t.Errorf("the second run removed that of the first: %v", err)
	}
	closeTarget(t, first, testserver.Config(t))
}

// An installation that fails leaves nothing after Close, and one whose run was killed leaves nothing
// after cleanup.
func TestInstallForRunUndone(t *testing.T) {
	texts := append(policy("fine", "", "configmaps"), crd("undone.example.com", 9, 1), `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: bad}
spec: {validations: [{expression: "object."}]}
`)
	on := shared(t, "undone")
	err := on.InstallForRun(t.Context(), parsed(t, texts...))
	var failed *framework.ManifestError
	if !errors.As(err, &failed) || failed.Index != 3 {
		t.Errorf("got %v; want an error of manifest 3", err)
	}
	closeTarget(t, on, testserver.Config(t))
	killed := shared(t, "killed")
	if err := killed.InstallForRun(t.Context(), parsed(t, texts[:3]...)); err != nil {
		t.Fatal(err)
	}
	killed.sign.end()
	cleanUp(t, "killed", 4)
	if _, err := definitions(t).Get(t.Context(), "widgets.undone.example.com", metav1.GetOptions{}); err == nil {
		t.Error("the CustomResourceDefinition is left")
	}
}

// cleanUp removes what a killed run left, and checks that there were so many objects at least.
func cleanUp(t *testing.T, run string, least int) {
	t.Helper()
	client, err := dynamic.NewForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	// This process is alive, so the run counts as alive too, until its sign is old.
	records := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("at-" + run + "-run")
	if _, err := records.Patch(t.Context(), "run", "application/merge-patch+json", []byte(`{"data":{"renewed":"2020-01-01T00:00:00.000000Z"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	found, err := Cleanup(t.Context(), testserver.Config(t), CleanupOptions{Run: run})
	if err != nil || len(found) < least {
		t.Errorf("cleanup removed %v, %v; want at least %d objects", found, err, least)
	}
	found, err = Cleanup(context.WithoutCancel(t.Context()), testserver.Config(t), CleanupOptions{Run: run, DryRun: true})
	if err != nil || len(found) > 0 {
		t.Errorf("left after cleanup: %v, %v", found, err)
	}
}

// What cannot be narrowed, or would stop other clients, is refused.
func TestInstallForRunRefuses(t *testing.T) {
	byName := "{matchLabels: {kubernetes.io/metadata.name: prod}}"
	for name, one := range map[string]struct{ text, want, field string }{
		"conversion": {
			strings.Replace(crd("converted.example.com", 9, 1), "  scope:", "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com'}}}\n  scope:", 1),
			"garbage collection", "",
		},
		"policy for a namespace": {
			strings.Replace(policy("named", "", "configmaps")[0], "matchConstraints: {", "matchConstraints: {namespaceSelector: "+byName+", ", 1),
			"only selects namespace prod", "spec.matchConstraints.namespaceSelector",
		},
		"webhook for namespaces": {`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: named}
webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: "https://example.com"}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a, b]}]}}]
`, "only selects namespace a, b", "webhooks[0].namespaceSelector"},
		"binding for a namespace": {
			strings.Replace(policy("named", "", "configmaps")[1], "spec: {", "spec: {matchResources: {namespaceSelector: "+byName+"}, ", 1),
			"only selects namespace prod", "spec.matchResources.namespaceSelector",
		},
		"parameter":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: limit, namespace: theirs}}", "give a parameter in the scenarios", ""},
		"not served": {"{apiVersion: example.org/v1, kind: Unknown, metadata: {name: a}}", "does not serve", ""},
	} {
		t.Run(name, func(t *testing.T) {
			on := shared(t, "refuses")
			err := on.InstallForRun(t.Context(), parsed(t, one.text))
			var failed *framework.ManifestError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), one.want) || failed.Field != one.field {
				t.Errorf("got %v; want %q", err, one.want)
			}
			closeTarget(t, on, testserver.Config(t))
		})
	}
}
