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

// TestRules checks that the bad file of each rule breaks this rule and no other, and that the good file breaks none.
func TestRules(t *testing.T) {
	for _, rule := range All() {
		t.Run(rule.ID, func(t *testing.T) {
			folder := filepath.Join("testdata", strings.ToLower(rule.ID))
			bad, good := judge(t, folder+"/bad.yaml"), judge(t, folder+"/good.yaml")
			if len(bad.Findings) == 0 {
				t.Errorf("bad.yaml has no finding; not checked: %+v", bad.NotChecked)
			}
			for _, f := range bad.Findings {
				if f.Rule != rule.ID {
					t.Errorf("bad.yaml: %s", f)
				}
				if f.Message == "" || f.Fix == "" || f.Line == 0 || f.Fingerprint == "" || len(f.Source) == 0 {
					t.Errorf("finding lacks a field: %+v", f)
				}
			}
			for _, f := range good.Findings {
				t.Errorf("good.yaml: %s", f)
			}
			for _, r := range []*Report{bad, good} {
				for _, u := range r.Inconclusive() {
					t.Errorf("%s is inconclusive for %s: %s", u.Rule, u.Object, u.Reason)
				}
			}
		})
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
	if problems := scenario.Errors(err); len(problems) < 6 {
		t.Errorf("got %d errors, want one for each object that cannot be read: %v", len(problems), err)
	}
}
