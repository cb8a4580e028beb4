package scenario_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// valid is a scenario to add to.
const valid = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: NAME}
spec:
  level: MUST
  requirement: A requirement.
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
`

func TestObservesPlugins(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want bool
	}{
		"no expectation": {"", false},
		"calls":          {"      then: {calls: []}\n", false},
		"plugins":        {"      then: {plugins: [A]}\n", true},
		"none":           {"      then: {plugins: []}\n", true},
		"in parallel":    {"    - parallel: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: {exclude: [A]}}}]\n", true},
		"meanwhile":      {"  hooks: {a.example.com: {meanwhile: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: [A]}}]}}\n" + configuration, true},
		"in turn":        {"  hooks: {a.example.com: {replies: [{meanwhile: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: [A]}}]}]}}\n" + configuration, true},
		"script":         {"    - script: {a.example.com: {meanwhile: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: [A]}}]}}\n" + configuration, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid, "NAME", "plugins.one", 1) + test.spec
			all, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"plugins/one.yaml": {Data: []byte(text)}}})
			if err != nil {
				t.Error(err)
				return
			}
			if got := all[0].ObservesPlugins(); got != test.want {
				t.Errorf("ObservesPlugins is %t, want %t", got, test.want)
			}
		})
	}
}

func TestChangesFiles(t *testing.T) {
	server := "  server: {files: {a: b}}\n"
	for name, test := range map[string]struct {
		spec string
		want bool
	}{
		"server alone": {server, false},
		"step":         {"    - files: {remove: [a]}\n" + server, true},
		"in parallel":  {"    - parallel: [{files: {write: {a: c}}}]\n" + server, true},
		"meanwhile":    {"  hooks: {a.example.com: {meanwhile: [{files: {remove: [a]}}]}}\n" + configuration + server, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid, "NAME", "files.one", 1) + test.spec
			all, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"files/one.yaml": {Data: []byte(text)}}})
			if err != nil {
				t.Error(err)
				return
			}
			if got := all[0].ChangesFiles(); got != test.want {
				t.Errorf("ChangesFiles is %t, want %t", got, test.want)
			}
		})
	}
}

// configuration is given by the scenarios with a webhook.
const configuration = `  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: $(id)}
      webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {}}]
`
