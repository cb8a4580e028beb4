package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

// narrowed is a scenario whose step a webhook or policy cannot decide about, if says is not
// empty, and otherwise one whose step it can, or would not decide about anyway.
type narrowed struct {
	name, given, when, says string
}

const (
	onConfigMaps = `rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`
	onRoles      = `rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Cluster}]`
	onScalers    = `rules: [{operations: [CREATE], apiGroups: [autoscaling], apiVersions: [v1], resources: [horizontalpodautoscalers]}]`
	scaler       = `create: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: default}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}` + "\n      dryRun: true"
	toDefault    = `create: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, namespace: default}}`
	toOwn        = `create: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}`
)

func aWebhook(fields string) string {
	return fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: w.example.com, %s}]}", fields)
}

// aPolicy returns a policy, and its binding if that is not empty.
func aPolicy(constraints, binding string) string {
	policy := fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}, spec: {paramKind: {apiVersion: v1, kind: ResourceQuota}, matchConstraints: {%s}, validations: [{expression: "true"}]}}`, constraints)
	if binding == "" {
		return policy
	}
	return policy + "\n    - " + fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: p, validationActions: [Deny], %s}}", binding)
}

func narrowedScenarios() []narrowed {
	const (
		ofPolicy = `resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`
		params   = `paramRef: {name: none, namespace: $(namespace), parameterNotFoundAction: Allow}`
		system   = `namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}`
	)
	return []narrowed{
		{"elsewhere", aWebhook(onConfigMaps), toDefault, "ValidatingWebhookConfiguration a, webhook w.example.com cannot decide about this request: default is not a namespace of the scenario: use $(namespace) or one of spec.namespaces, or set isolation: none"},
		{"elsewhere-dry", aWebhook(onConfigMaps), toDefault + "\n      dryRun: true", "default is not a namespace"},
		{"own", aWebhook(onConfigMaps), toOwn, ""},
		{"other-kind", aWebhook(onConfigMaps), "create: {apiVersion: v1, kind: Secret, metadata: {generateName: a-, namespace: default}}", ""},
		{"read", aWebhook(onConfigMaps), "list: {apiVersion: v1, kind: ConfigMap, namespace: default}", ""},
		{"not-selected", aWebhook("namespaceSelector: {matchLabels: {team: blue}}, " + onConfigMaps), toDefault, ""},
		{"other-object", aWebhook("objectSelector: {matchLabels: {tier: gold}}, " + onConfigMaps), toDefault, ""},
		{"exact-version", aWebhook("matchPolicy: Exact, " + onScalers), scaler, ""},
		{"equivalent-version", aWebhook(onScalers), scaler, "default is not a namespace"},
		{"excluded-operation", aWebhook(onConfigMaps), "delete: {apiVersion: v1, kind: ConfigMap, name: none, namespace: default}\n      then: {code: 404}", ""},
		{"applied", aWebhook(onConfigMaps), "apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: applied, namespace: default}}", "default is not a namespace"},
		{"policy-elsewhere", aPolicy(ofPolicy, params), toDefault, "ValidatingAdmissionPolicy p, binding b cannot decide about this request: default is not a namespace"},
		{"policy-own", aPolicy(ofPolicy, params), toOwn, ""},
		{"policy-unbound", aPolicy(ofPolicy, ""), toDefault, ""},
		{"policy-excludes", aPolicy(ofPolicy+", exclude"+strings.Replace(ofPolicy, "r", "R", 1), params), toDefault, ""},
		{"binding-not-selected", aPolicy(ofPolicy, "matchResources: {namespaceSelector: {matchLabels: {team: blue}}}, "+params), toDefault, ""},
		{"params-elsewhere", aPolicy(ofPolicy, strings.Replace(params, "$(namespace)", "default", 1)), toOwn, "its paramRef names the namespace default, which does not belong to the scenario"},
		{"only-kube-system", aPolicy(system+", "+ofPolicy, params), toOwn, `its namespaceSelector requires "kubernetes.io/metadata.name=kube-system", and no namespace of the scenario matches`},
		{"not-kube-system", aPolicy(strings.Replace(system, "matchLabels: {kubernetes.io/metadata.name: kube-system}", "matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]", 1)+", "+ofPolicy, params), toOwn, ""},
		{"kube-system-among-others", aPolicy(system+", "+ofPolicy, params) + "\n    - " + aWebhook(onConfigMaps), toOwn, ""},
		{"label-of-another", aWebhook("namespaceSelector: {matchExpressions: [{key: admissiontest.dev/scenario, operator: DoesNotExist}]}, " + onConfigMaps), toOwn + "\n      then: {calls: [w.example.com]}", ""},
		{"role-of-another-name", aWebhook(onRoles), "create: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: foreign}}\n      dryRun: true\n      then: {calls: [w.example.com]}", ""},
		{"role", aWebhook(onRoles), "patch: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: view, merge: {metadata: {labels: {a: b}}}}\n      dryRun: true\n      then: {calls: [w.example.com]}", ""},
		{"role-of-a-name-from-a-step", aWebhook(onRoles), "id: view\n      create: {apiVersion: v1, kind: ConfigMap, metadata: {name: view}}\n    - patch: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: $(steps.view.object.metadata.name), merge: {metadata: {labels: {a: b}}}}\n      dryRun: true", "neither the object nor the user has $(id) in its name"},
		{"own-role", aWebhook(onRoles), "create: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {generateName: $(id)-}}\n      dryRun: true", ""},
		{"own-user", aWebhook(onRoles), "delete: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: none}\n      as: {name: $(id)-user, groups: [system:masters]}\n      then: {code: 404}", ""},
		{"kube-public", aWebhook(onRoles), "patch: {apiVersion: v1, kind: Namespace, name: kube-public, merge: {metadata: {labels: {a: b}}}}\n      dryRun: true\n      then: {calls: [w.example.com]}", ""},
		{"own-namespace", aWebhook(onRoles), "patch: {apiVersion: v1, kind: Namespace, name: $(namespace), merge: {metadata: {labels: {a: b}}}}", ""},
		{"removed", aWebhook(onConfigMaps), "remove: [{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, name: a}]\n    - " + toDefault, ""},
		{"by-a-step", "{apiVersion: v1, kind: Secret, metadata: {name: a}}", "create: " + strings.Replace(aWebhook(`sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1"}, `+onConfigMaps), "name: a", "name: $(id)-a", 1) + "\n    - " + toDefault, "ValidatingWebhookConfiguration a, webhook w.example.com cannot decide"},
		{"meanwhile", aWebhook(onConfigMaps), "script: {w.example.com: {meanwhile: [{" + toDefault + "}]}}\n    - " + toOwn, "default is not a namespace of the scenario"},
		{"given-elsewhere", "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: default}}", toOwn, "given[0]: install secrets a: the scenario is narrowed to its own namespaces and names: namespace default does not belong to the scenario"},
	}
}

// A step that no webhook or policy of the scenario can decide about, because the scenario is
// narrowed to its namespaces, is a mistake with its position, and no pass.
func TestNarrowed(t *testing.T) {
	var documents []string
	says := map[string]string{}
	for _, one := range narrowedScenarios() {
		says["mine."+one.name] = one.says
		documents = append(documents, fmt.Sprintf(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.%s}
spec:
  level: MUST
  requirement: A requirement.
  given:
    - %s
  when:
    - %s
`, one.name, one.given, one.when))
	}
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(strings.Join(documents, "---\n"))}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios,
		Provider:  providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range got.Outcomes {
		want := says[outcome.Name]
		switch {
		case want == "" && outcome.Verdict != framework.Pass:
			t.Errorf("%s: got %s (%s), want pass", outcome.Name, outcome.Verdict, outcome.Reason)
		case want != "" && (outcome.Verdict != framework.Errored || !outcome.Mistake || !strings.Contains(outcome.Reason, want)):
			t.Errorf("%s: got %s, mistake %t (%s), want an error with %q", outcome.Name, outcome.Verdict, outcome.Mistake, outcome.Reason, want)
		case want != "" && !strings.HasPrefix(outcome.Reason, "a.yaml:"):
			t.Errorf("%s: %q has no position", outcome.Name, outcome.Reason)
		}
	}
}
