package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

func judge(t testing.TB, files ...string) *Report {
	t.Helper()
	project, err := shipped.Read(files...)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Judge(t.Context(), Input{Manifests: project.Manifests, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestRules checks that the bad files of each rule break this rule and no other, and that the good files break none.
func TestRules(t *testing.T) {
	for _, rule := range All() {
		t.Run(rule.ID, func(t *testing.T) {
			files, _ := filepath.Glob(filepath.Join("testdata", strings.ToLower(rule.ID), "*.yaml"))
			for _, file := range files {
				checkFile(t, rule.ID, file)
			}
		})
	}
}

// checkFile checks that a bad file breaks a rule, and that a good one breaks none.
func checkFile(t *testing.T, id, file string) {
	report, bad := judge(t, file), strings.HasPrefix(filepath.Base(file), "bad")
	if bad != (len(report.Findings) > 0) {
		t.Errorf("%s: got %d findings; not checked: %+v", file, len(report.Findings), report.NotChecked)
	}
	for _, f := range report.Findings {
		if f.Rule != id || !bad {
			t.Errorf("%s: %s", file, f)
		}
		if f.Message == "" || f.Fix == "" || f.Line == 0 || f.Fingerprint == "" || len(f.Source) == 0 {
			t.Errorf("%s: finding lacks a field: %+v", file, f)
		}
	}
	for _, u := range report.Inconclusive() {
		t.Errorf("%s: %s is inconclusive for %s: %s", file, u.Rule, u.Object, u.Reason)
	}
}

// TestRulesAreComplete checks the texts of the rules.
func TestRulesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All() {
		for _, text := range []string{r.ID, r.Name, string(r.Level), r.Fix, strings.Join(r.Source, "")} {
			if text == "" {
				t.Errorf("%s lacks a field: %+v", r.ID, r)
			}
		}
		if seen[r.ID] || seen[r.Name] {
			t.Errorf("%s is there twice", r)
		}
		seen[r.ID], seen[r.Name] = true, true
	}
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if id := strings.ToUpper(folder.Name()); folder.IsDir() && folder.Name() != "found" && folder.Name() != "cases" && !seen[id] {
			t.Errorf("testdata/%s: there is no rule %s", folder.Name(), id)
		}
	}
}

// TestHostile checks that no configuration makes a rule panic, and that one that cannot be read is an error.
func TestHostile(t *testing.T) {
	var manifests []shipped.Manifest
	for i, webhooks := range []any{
		nil, 7, []any{}, []any{nil}, []any{7}, []any{map[string]any{}},
		[]any{map[string]any{"name": "x", "rules": []any{nil, map[string]any{}}}},
		[]any{map[string]any{"name": "x.example.com", "rules": []any{map[string]any{"operations": []any{""}, "apiGroups": []any{"", "*.x"}, "apiVersions": []any{""}, "resources": []any{"", "/", "a/b/c", "*/*/*"}}}}},
		[]any{map[string]any{"name": "x.example.com", "matchConditions": []any{nil, map[string]any{"name": "a"}}, "rules": []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}}}}},
		[]any{map[string]any{"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Nope"}}}}},
		[]any{map[string]any{"clientConfig": map[string]any{"url": "::", "caBundle": "!"}, "timeoutSeconds": int64(-5)}},
		[]any{map[string]any{"clientConfig": map[string]any{"url": "::", "service": map[string]any{}}}},
	} {
		for _, kind := range []string{"Validating", "Mutating"} {
			manifests = append(manifests, shipped.Manifest{File: "a.yaml", Line: i + 1, Object: map[string]any{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration", "metadata": map[string]any{"name": fmt.Sprint("a", i)}, "webhooks": webhooks,
			}})
		}
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"} {
		for i, spec := range []any{nil, 7, map[string]any{}, map[string]any{"matchConstraints": map[string]any{"resourceRules": []any{nil}}, "policyName": "p2", "paramKind": map[string]any{}, "paramRef": map[string]any{}}} {
			manifests = append(manifests, shipped.Manifest{File: "a.yaml", Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": fmt.Sprint("p", i)}, "spec": spec}})
		}
	}
	report, err := Judge(t.Context(), Input{Manifests: manifests})
	if report == nil || len(report.Findings) == 0 {
		t.Errorf("got no findings: %v", err)
	}
	if problems := scenario.Errors(err); len(problems) < 6 || !strings.Contains(err.Error(), "a10: a caBundle is not in base64") {
		t.Errorf("got %d errors, want one for each object that cannot be read: %v", len(problems), err)
	}
}
