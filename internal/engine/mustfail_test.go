package engine_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// varying is what differs from run to run in what a failure prints, and what
// stands for it in the golden files.
func varying() []replacement {
	return []replacement{
		{regexp.MustCompile(`at-[a-z2-7]{10}-\d{5}`), "ID"},
		{regexp.MustCompile(` *\+?\d+(\.\d+)?(ns|µs|ms|s)\b`), " TIME"},
		{regexp.MustCompile(`(third|fourth)\.example\.com( \(call|\)| +CREATE)`), "ANY$2"},
		{regexp.MustCompile(`index_\d+`), "index_N"},
	}
}

type replacement struct {
	pattern *regexp.Regexp
	stands  string
}

// Each kind of expectation has a scenario that a sound API server fails, and a
// golden file of what that prints.
func TestMustFail(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/mustfail")
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios,
		Provider:  providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
		Patience:  time.Second,
		Rerun:     func(s scenario.Scenario) string { return "admissiontest run " + s.Metadata.Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]framework.Verdict{
		"mustfail.wait": framework.Inconclusive, "mustfail.placeholder": framework.Errored, "mustfail.unauthorized": framework.Inconclusive,
		"mustfail.control": framework.Inconclusive, "mustfail.kind": framework.Errored,
	}
	for _, outcome := range got.Outcomes {
		t.Run(outcome.Name, func(t *testing.T) {
			verdict := want[outcome.Name]
			switch {
			case strings.HasPrefix(outcome.Name, "mustfail.vacuous-"):
				verdict = framework.Errored
			case verdict == "":
				verdict = framework.Fail
			}
			if outcome.Verdict != verdict {
				t.Errorf("verdict: got %s (%s), want %s", outcome.Verdict, outcome.Reason, verdict)
			}
			compare(t, outcome)
		})
	}
	golden.Whole(t, filepath.Join("testdata", "mustfail", "*.golden"))
	if files, err := filepath.Glob(filepath.Join("testdata", "mustfail", "*.yaml")); err != nil || len(files) == 0 || len(got.Outcomes) < len(files) || len(got.Outcomes) != len(scenarios) {
		t.Errorf("got %d outcomes of %d scenarios in %d files; want one of each scenario, and a scenario in each file", len(got.Outcomes), len(scenarios), len(files))
	}
}

func compare(t *testing.T, outcome report.Outcome) {
	t.Helper()
	single := report.New(framework.TargetInfo{Kind: "envtest", ServerVersion: "v1.36.3"})
	single.Outcomes = []report.Outcome{outcome}
	var text strings.Builder
	if err := report.WriteConsole(&text, single, report.ConsoleOptions{}); err != nil {
		t.Fatal(err)
	}
	printed := text.String()
	for _, v := range varying() {
		printed = v.pattern.ReplaceAllString(printed, v.stands)
	}
	file := filepath.Join("testdata", "mustfail", strings.TrimPrefix(outcome.Name, "mustfail.")+".golden")
	golden.Compare(t, file, printed)
}

// A failure has the positions of expressions and objects in the files of the user, the warnings of the type
// check, and the names that the user wrote.
func TestWhatFailuresSay(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/says/says.yaml", "testdata/says/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	install, err := shipped.Load("testdata/says/installed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios, Install: install,
		Provider: providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var text, document strings.Builder
	for _, outcome := range got.Outcomes {
		if outcome.Verdict != framework.Fail {
			t.Errorf("%s: got %s (%s), want fail", outcome.Name, outcome.Verdict, outcome.Reason)
		}
		text.WriteString(report.FailureText(outcome) + "\n")
	}
	golden.Compare(t, filepath.Join("testdata", "says", "says.golden"), text.String())
	if err := report.WriteJSON(&document, got); err != nil {
		t.Fatal(err)
	}
	if made := regexp.MustCompile(`at-[a-z2-7]{10}\S*`).FindString(document.String()); made != "" {
		t.Errorf("the report has the name %s, which nobody wrote:\n%s", made, document.String())
	}
}

// Each case of testdata/policytest has the verdict that its name begins with.
func TestPolicyTests(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/policytest/pass.yaml", "testdata/policytest/fail.yaml", "testdata/policytest/error.yaml", "testdata/policytest/users.yaml", "testdata/policytest/configurations.yaml", "testdata/policytest/accounts.yaml", "testdata/policytest/subresources.yaml")
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
	if len(got.Outcomes) < 72 {
		t.Errorf("got %d outcomes, want at least 72", len(got.Outcomes))
	}
	reasons := map[string]string{}
	for _, outcome := range got.Outcomes {
		want, _, _ := strings.Cut(outcome.Name, ".")
		if string(outcome.Verdict) != want {
			t.Errorf("%s: got %s (%s), want %s", outcome.Name, outcome.Verdict, outcome.Reason, want)
		}
		if outcome.Verdict == framework.Errored {
			reasons[outcome.Name], _, _ = strings.Cut(outcome.Reason, "\n")
			if !outcome.Mistake {
				t.Errorf("%s: not reported as a mistake in the files", outcome.Name)
			}
		}
	}
	const file = "testdata/policytest/error.yaml"
	want := map[string]string{
		"error.a":        file + ":11:56: ValidatingAdmissionPolicy broken: spec.validations[0].expression: Syntax error: token recognition error at: '='",
		"error.b":        "setup: this case uses the same policies as error.a: the reason is there",
		"error.object.a": file + `:21:78: ConfigMap a: unknown field "dta"; expected a field of the API server's v1 ConfigMap; did you mean "data"?`,
		"error.subresources.debug-of-the-pod-itself":  "testdata/policytest/subresources.yaml:44:108: spec.ephemeralContainers: the API server does not take this field in an update, so the policies would not meet it; use subresource: ephemeralcontainers",
		"error.subresources.image-by-status":          "testdata/policytest/subresources.yaml:48:62: spec: the API server does not take this field in an update, so the policies would not meet it; write it in old too, or leave out subresource",
		"error.subresources.status-by-the-pod-itself": "testdata/policytest/subresources.yaml:51:109: status: the API server does not take this field in an update, so the policies would not meet it; write it in old too, or use subresource: status",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons (-want +got)\n%s", diff)
	}
}

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
