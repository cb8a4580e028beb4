package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

const (
	missing   = `{apiVersion: example.org/v1, kind: Gadget, metadata: {name: a}}`
	reference = `{apiVersion: example.org/v1, kind: Gadget, name: a}`
	plain     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
	webhooks  = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: one.example.com, rules: [{operations: ["*"], apiGroups: ["", example.org], apiVersions: [v1], resources: [configmaps, gadgets, gadgets/any]}]}]}`
	gadgets   = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.$(id).example.org}, spec: {group: $(id).example.org, scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
)

// A scenario that needs a kind or subresource which the API server does not serve is unsupported,
// wherever the scenario names it, and the reason names it. A misspelt subresource is an error, so that it
// cannot be overlooked beside scenarios that pass. A misspelt kind ends the run before: see TestMisspeltKinds of
// package providers.
func TestNotServed(t *testing.T) {
	t.Parallel()
	files, want := fstest.MapFS{}, map[string]framework.Verdict{}
	add := func(name string, verdict framework.Verdict, spec string) {
		want["served."+name] = verdict
		files[name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: served.%s}
spec: {level: MUST, requirement: R., source: ["https://example.com"], %s}
`, name, spec)}
	}
	for name, step := range map[string]string{
		"create": `create: ` + missing, "update": `update: ` + missing, "apply": `apply: ` + missing,
		"get": `get: ` + reference, "list": `list: {apiVersion: example.org/v1, kind: Gadget}`,
		"delete": `delete: ` + reference, "delete-collection": `deleteCollection: {apiVersion: example.org/v1, kind: Gadget}`,
		"patch":   `patch: {apiVersion: example.org/v1, kind: Gadget, name: a, merge: {}}`,
		"connect": `connect: {apiVersion: example.org/v1, kind: Gadget, name: a, subresource: proxy}`,
		"install": `install: [` + missing + `]`, "remove": `remove: [` + reference + `]`,
		"wait":     `wait: {apiVersion: example.org/v1, kind: Gadget, name: a, gone: true}`,
		"parallel": `parallel: [{create: ` + plain + `}, {create: ` + missing + `}]`,
		// Subresources of kinds that are served.
		"connect-subresource":  `connect: {apiVersion: v1, kind: ConfigMap, name: a, subresource: proxy}`,
		"patch-subresource":    `patch: {apiVersion: v1, kind: ConfigMap, name: a, merge: {}}, subresource: status`,
		"parallel-subresource": `parallel: [{create: ` + plain + `}, {create: ` + plain + `, subresource: scale, parent: {apiVersion: v1, kind: ConfigMap}}]`,
	} {
		add(name, framework.Unsupported, `when: [{`+step+`}]`)
	}
	add("given", framework.Unsupported, `given: [`+missing+`], when: [{create: `+plain+`}]`)
	add("meanwhile", framework.Unsupported, `given: [`+webhooks+`], hooks: {one.example.com: {meanwhile: [{create: `+missing+`}]}}, when: [{create: `+plain+`}]`)
	add("meanwhile-parallel", framework.Unsupported, `given: [`+webhooks+`], hooks: {one.example.com: {meanwhile: [{get: `+reference+`}]}}, when: [{parallel: [{create: `+plain+`}]}]`)
	add("rule", framework.Pass, `given: [`+webhooks+`], when: [{create: `+plain+`, then: {calls: [one.example.com]}}]`)
	add("own-definition", framework.Pass, `given: [`+gadgets+`], when: [{create: {apiVersion: $(id).example.org/v1, kind: Gadget, metadata: {name: a}}}]`)
	add("own-subresource", framework.Pass, `given: [`+gadgets+`], when: [{patch: {apiVersion: $(id).example.org/v1, kind: Gadget, name: a, merge: {}}, subresource: status, then: {code: 404}}]`)
	add("misspelt-subresource", framework.Errored, `when: [{patch: {apiVersion: v1, kind: Namespace, name: $(namespace), merge: {}}, subresource: statu}]`)
	all, err := scenario.Load(scenario.LoadOptions{FS: files})
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: all, Patience: 5 * time.Second,
		Provider: providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[framework.Verdict]string{framework.Unsupported: `example.org/v1 Gadget|v1 configmaps/`, framework.Errored: `did you mean`}
	for _, outcome := range got.Outcomes {
		named := names[outcome.Verdict] == ""
		for _, part := range strings.Split(names[outcome.Verdict], "|") {
			named = named || strings.Contains(outcome.Reason, part)
		}
		if outcome.Verdict != want[outcome.Name] || !named {
			t.Errorf("%s is %s: %q; want %s", outcome.Name, outcome.Verdict, outcome.Reason, want[outcome.Name])
		}
	}
}
