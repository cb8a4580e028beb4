package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/target"
)

// open is a scenario without isolation, whose configurations decide about every request: those
// of a run itself, too. It uses objects of kube-system and of the cluster, by their own names.
const open = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: NAME}
spec:
  level: MUST
  requirement: A requirement.
  isolation: none
  given:
    - {apiVersion: v1, kind: Namespace, metadata: {name: guard-system, labels: {of: NAME}}}
    - {apiVersion: v1, kind: ResourceQuota, metadata: {name: limit, namespace: kube-system, labels: {of: NAME}}}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: guard, labels: {of: NAME}}}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: guard}
      webhooks: [{name: m.example.com, rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: guard}
      spec:
        paramKind: {apiVersion: v1, kind: ResourceQuota}
        matchConstraints:
          namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
          resourceRules: [{operations: [CREATE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]
        validations: [{expression: "object.metadata.name != 'bad'", messageExpression: "'limit of ' + params.metadata.labels.of"}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: guard}
      spec: {policyName: guard, validationActions: [Deny], paramRef: {name: limit, namespace: kube-system, parameterNotFoundAction: Allow}}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: no-namespaces}
      spec:
        matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [namespaces, serviceaccounts]}]}
        validations: [{expression: "false"}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: no-namespaces}
      spec: {policyName: no-namespaces, validationActions: [Deny]}
  hooks:
    m.example.com: {allowed: false, status: {message: not in NAME}}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: any, namespace: guard-system}}
      then: {allowed: false, message: not in NAME, calls: [m.example.com]}
    - script: {m.example.com: {allowed: true}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: kube-system}}
      then: {calls: [m.example.com]}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: any}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: bad, namespace: kube-system}}
      then: {code: 422, message: ["ValidatingAdmissionPolicy 'guard' with binding 'guard'", limit of NAME]}
    - create: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: of-a-step}, value: 1}
    - create:
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: of-a-step}
        webhooks:
          - name: last.example.com
            rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
            clientConfig: {url: "https://unknown.invalid/"}
            sideEffects: None
            admissionReviewVersions: [v1]
      then: {calls: []}
`

// ordinary is a scenario that does what the configurations of open refuse.
const ordinary = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.ordinary}
spec:
  level: MUST
  requirement: A requirement.
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: any}}
`

func openScenarios(t *testing.T, names ...string) []scenario.Scenario {
	t.Helper()
	var documents []string
	for _, name := range names {
		if name == "mine.ordinary" {
			documents = append(documents, ordinary)
			continue
		}
		documents = append(documents, strings.ReplaceAll(open, "NAME", name))
	}
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(strings.Join(documents, "---\n"))}}})
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

// sharing is a provider with one server, like that of a kind cluster.
type sharing struct{ target.Provider }

func (s sharing) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	return s.Provider.Start(ctx, options)
}

// confined is a provider whose server has other clients.
type confined struct{ sharing }

func (c confined) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	target, err := c.sharing.Start(ctx, options)
	return confinedTarget{target}, err
}

type confinedTarget struct{ target.Target }

func (t confinedTarget) Optional() target.Optional {
	optional := t.Target.Optional()
	optional.Confined = func(string, framework.Request) error { return nil }
	return optional
}

// Scenarios without isolation install what they are given as it is, in the namespaces that it
// names. Neither the run nor another scenario notices, on a server for each and on one for
// all. An API server with other clients does not run them.
func TestIsolationNone(t *testing.T) {
	envtest := providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }})
	all := []string{"mine.one", "mine.two", "mine.ordinary"}
	for name, test := range map[string]struct {
		names    []string
		provider target.Provider
		want     framework.Verdict
	}{
		"a server for each":         {all, envtest, framework.Pass},
		"one server":                {all, sharing{envtest}, framework.Pass},
		"one server, without other": {all[:1], sharing{envtest}, framework.Pass},
		"other clients":             {all, confined{sharing{envtest}}, framework.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := engine.Run(t.Context(), engine.Options{Scenarios: openScenarios(t, test.names...), Provider: test.provider})
			if err != nil || len(got.Outcomes) != len(test.names) {
				t.Fatalf("got %v, %v; want %d outcomes", got.Summary, err, len(test.names))
			}
			for _, outcome := range got.Outcomes {
				want := test.want
				if outcome.Name == "mine.ordinary" {
					want = framework.Pass
				}
				if outcome.Verdict != want {
					t.Errorf("%s: got %s (%s), want %s", outcome.Name, outcome.Verdict, outcome.Reason, want)
				}
				if outcome.Verdict == framework.Unsupported && !strings.Contains(outcome.Reason, "needs an API server without other clients") {
					t.Errorf("%s: reason %q does not say what is needed", outcome.Name, outcome.Reason)
				}
			}
		})
	}
}
