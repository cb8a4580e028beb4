package e2e

import (
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

// ofNamespaces uses the namespaces of a scenario wherever a scenario can name one: its webhook
// and its policy decide in all of them, and the selectors see their labels.
const ofNamespaces = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.namespaces}
spec:
  level: MUST
  requirement: A requirement.
  namespaces:
    - {name: blue, labels: {team: blue, of: $(id)}, annotations: {peer: $(namespace.red)}}
    - {name: red}
  given:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: given, namespace: $(namespace.red)}}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: a}
      webhooks:
        - name: every.example.com
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        - name: blue.example.com
          namespaceSelector: {matchLabels: {team: blue, of: $(id), kubernetes.io/metadata.name: $(namespace.blue)}}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: p}
      spec:
        matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]}
        validations: [{expression: "namespaceObject.metadata.?annotations['peer'].orValue('') == ''", message: it has a peer}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: p}
      spec: {policyName: p, validationActions: [Deny]}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $(namespace.blue)}}
      then: {calls: {anyOrder: [every.example.com, blue.example.com]}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $(namespace.red)}}
      then: {calls: [every.example.com]}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      then: {calls: [every.example.com]}
    - create: {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: $(namespace.red)}}
    - create: {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: $(namespace.blue)}}
      then: {code: 422, message: it has a peer}
    - get: {apiVersion: v1, kind: Namespace, name: $(namespace.blue)}
      then: {object: {metadata: {name: $(id)-blue, annotations: {peer: $(id)-red}}}}
`

// The namespaces of a scenario are on a cluster while it runs, and no longer.
func namespacesTest(t *testing.T, admin *rest.Config) {
	config, _ := operator(t, admin, transportRole)
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(ofNamespaces)}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios,
		Provider:  providers.RESTConfig{Config: config, Transport: providers.Transport{Mode: framework.TransportURL}},
	})
	wantAllPass(t, got, err)
	wantNothingLeft(t, admin)
}
