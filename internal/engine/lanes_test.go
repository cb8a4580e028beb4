package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
)

func laneScenario(t *testing.T, name, fields, given, when string) scenario.Scenario {
	t.Helper()
	text := fmt.Sprintf("apiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: mine.%s}\nspec:\n  level: MUST\n  requirement: A requirement.\n%s  given:\n    - %s\n  when:\n    - %s\n", name, fields, given, when)
	all, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func aWebhook(fields string) string {
	return fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: w.example.com, %s}]}", fields)
}

// What a scenario installs and sends says whether it runs alone: whether that is only about its own namespaces.
func TestAlone(t *testing.T) {
	t.Parallel()
	const (
		onConfigMaps = `rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`
		onAll        = `rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]`
		toDefault    = `create: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, namespace: default}}`
		toOwn        = `create: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}`
		aRole        = `create: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME}}`
		aSecret      = `{apiVersion: v1, kind: Secret, metadata: {name: a}}`
		binding      = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: p, FIELDS}}`
		widgets      = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.$(run).example.com}, spec: {group: $(run).example.com, scope: SCOPE, names: {kind: Widget, plural: widgets}}}`
		aWidget      = "create: {apiVersion: $(run).example.com/v1, kind: Widget, metadata: {name: a}}\n      dryRun: true"
	)
	of := func(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }
	for name, test := range map[string]struct {
		fields, given, when string
		want                bool
	}{
		"own-namespace":            {"", aWebhook(onAll), toOwn, false},
		"own-namespace-as-object":  {"", aWebhook(onConfigMaps), "delete: {apiVersion: v1, kind: Namespace, name: $(namespace)}", false},
		"namespace-decided":        {"", aWebhook(onAll), "delete: {apiVersion: v1, kind: Namespace, name: $(namespace)}", true},
		"elsewhere":                {"", aWebhook(onConfigMaps), toDefault, true},
		"elsewhere-dry":            {"", aWebhook(onConfigMaps), toDefault + "\n      dryRun: true", true},
		"elsewhere-not-decided":    {"", aSecret, toDefault + "\n      dryRun: true", false},
		"elsewhere-read":           {"", aWebhook(onConfigMaps), "list: {apiVersion: v1, kind: ConfigMap, namespace: default}", false},
		"elsewhere-given":          {"", "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: default}}", toOwn, true},
		"elsewhere-meanwhile":      {"", aWebhook(onConfigMaps), "script: {w.example.com: {meanwhile: [{" + toDefault + "}]}}\n    - " + toOwn, true},
		"namespace-of-a-step":      {"", aWebhook(onConfigMaps), "id: a\n      " + toOwn + "\n    - " + strings.ReplaceAll(toDefault, "default", "$(steps.a.object.metadata.name)"), true},
		"role":                     {"", aSecret, of(aRole, "a"), true},
		"role-dry":                 {"", aSecret, of(aRole, "a") + "\n      dryRun: true", false},
		"role-own":                 {"", aSecret, of(aRole, "$(id)-a"), false},
		"role-decided":             {"", aWebhook(onAll), of(aRole, "$(id)-a") + "\n      dryRun: true", true},
		"role-not-decided":         {"", aWebhook(onConfigMaps), of(aRole, "$(id)-a"), false},
		"role-scope":               {"", aWebhook(strings.Replace(onAll, `"*/*"]`, `"*/*"], scope: Namespaced`, 1)), of(aRole, "$(id)-a"), false},
		"role-given":               {"", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}", toOwn, true},
		"collection":               {"", aSecret, "deleteCollection: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}\n      options: {labelSelector: a=$(id)}", true},
		"review":                   {"", aSecret, "create: {apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {nonResourceAttributes: {path: /, verb: get}}}", false},
		"configuration":            {"", aSecret, "create: " + strings.Replace(aWebhook("sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com'}"), "{name: a}", "{name: $(id)-a}", 1), true},
		"configuration-deleted":    {"", aWebhook(onConfigMaps), "delete: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, name: $(id)-a}", false},
		"selects-others":           {"", aWebhook("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: prod}}, " + onConfigMaps), toOwn, true},
		"selects-own-among-others": {"", aWebhook("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [prod, $(namespace)]}]}, " + onConfigMaps), toOwn, false},
		"excludes-others":          {"", aWebhook("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}, " + onConfigMaps), toOwn, false},
		"binding-selects-others":   {"", strings.Replace(binding, "FIELDS", "matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: prod}}}", 1), toOwn, true},
		"params-of-others":         {"", strings.Replace(binding, "FIELDS", "paramRef: {name: a, namespace: prod, parameterNotFoundAction: Deny}", 1), toOwn, true},
		"params-own":               {"", strings.Replace(binding, "FIELDS", "paramRef: {name: a, namespace: $(namespace), parameterNotFoundAction: Deny}", 1), toOwn, false},
		"custom":                   {"", strings.Replace(widgets, "SCOPE", "Namespaced", 1) + "\n    - " + aWebhook(onAll), aWidget, false},
		"custom-cluster":           {"", strings.Replace(widgets, "SCOPE", "Cluster", 1) + "\n    - " + aWebhook(onAll), aWidget, true},
		"exclusive":                {"  exclusive: true\n", aSecret, toOwn, true},
		"isolation":                {"  isolation: none\n", aSecret, toOwn, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := lanes{}
			if got := known.alone(laneScenario(t, name, test.fields, test.given, test.when)); got != test.want {
				t.Errorf("alone: %t, want %t", got, test.want)
			}
		})
	}
}

// What is installed for all scenarios decides too, an API server knows the scope of kinds that the files do not define, and
// only one CustomResourceDefinition of a name is in use at once.
func TestAloneBesides(t *testing.T) {
	t.Parallel()
	role := laneScenario(t, "role", "", "{apiVersion: v1, kind: Secret, metadata: {name: a}}", "create: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $(id)}}")
	all := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": []any{map[string]any{"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}}}}}}
	if got := (&lanes{install: []map[string]any{all}}).alone(role); !got {
		t.Error("a webhook that is installed for all decides about the request: want it alone")
	}
	widget := laneScenario(t, "widget", "", "{apiVersion: v1, kind: Secret, metadata: {name: a}}", "create: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}")
	for want, known := range map[bool]lanes{false: {}, true: {namespaced: func(schema.GroupVersionKind) (bool, error) { return false, nil }}} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			if got := known.alone(widget); got != want {
				t.Errorf("alone: %t, want %t", got, want)
			}
		})
	}
	defines := func(scope string) scenario.Scenario {
		return laneScenario(t, "defines", "", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.example.com}, spec: {scope: "+scope+"}}", "get: {apiVersion: v1, kind: Secret, name: a}")
	}
	known := lanes{}
	if first, same, other := known.alone(defines("Cluster")), known.alone(defines("Cluster")), known.alone(defines("Namespaced")); first || same || !other {
		t.Errorf("definitions of one name: alone %t, %t, %t; want only the one that differs", first, same, other)
	}
}

// Scenarios that wait longer for the API server are in their own squads, which begin first.
func TestSquads(t *testing.T) {
	t.Parallel()
	policy := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}}
	webhooks := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}}
	made := func(id string, given, install []map[string]any) *execution.Setup {
		return &execution.Setup{Case: &execution.Case{ID: id, Given: given, Scenario: scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{}, {Install: install}}}}}}
	}
	var got [][]string
	for _, squad := range squadsOf([]*execution.Setup{
		made("none", nil, nil), made("given", policy, nil), made("both", policy, policy), made("webhooks", webhooks, webhooks), made("step", nil, policy),
	}) {
		var ids []string
		for _, c := range squad {
			ids = append(ids, c.ID)
		}
		got = append(got, ids)
	}
	if diff := cmp.Diff([][]string{{"both", "step"}, {"given"}, {"none", "webhooks"}}, got); diff != "" {
		t.Errorf("squads (-want +got):\n%s", diff)
	}
}
