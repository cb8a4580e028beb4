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

func TestUses(t *testing.T) {
	const server = "  server: {files: {a: b}}\n"
	for name, test := range map[string]struct {
		spec           string
		plugins, files bool
	}{
		"no expectation": {"", false, false},
		"calls":          {"      then: {calls: []}\n", false, false},
		"plugins":        {"      then: {plugins: [A]}\n", true, false},
		"none":           {"      then: {plugins: []}\n", true, false},
		"in parallel":    {"    - parallel: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: {exclude: [A]}}}, {files: {write: {a: c}}}]\n" + server, true, true},
		"meanwhile":      {"  hooks: {a.example.com: {meanwhile: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: [A]}}, {files: {remove: [a]}}]}}\n" + configuration + server, true, true},
		"in turn":        {"  hooks: {a.example.com: {replies: [{meanwhile: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: [A]}}]}]}}\n" + configuration, true, false},
		"script":         {"    - script: {a.example.com: {meanwhile: [{delete: {apiVersion: v1, kind: ConfigMap, name: a}, then: {plugins: [A]}}]}}\n" + configuration, true, false},
		"server alone":   {server, false, false},
		"step":           {"    - files: {remove: [a]}\n" + server, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid, "NAME", "plugins.one", 1) + test.spec
			all, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"plugins/one.yaml": {Data: []byte(text)}}})
			if err != nil {
				t.Error(err)
				return
			}
			if plugins, files := all[0].ObservesPlugins(), all[0].ChangesFiles(); plugins != test.plugins || files != test.files {
				t.Errorf("ObservesPlugins is %t, want %t; ChangesFiles is %t, want %t", plugins, test.plugins, files, test.files)
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
