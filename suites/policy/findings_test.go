package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// finding is one of testdata/findings.yaml, which says what the fields mean.
type finding struct {
	Name, Expression                  string
	Message                           *string
	Rules, Good, Bad, Policies, Given []any
	Requests                          []struct {
		Object, Old any
		Denied      string
	}
	Want map[string]string
}

// TestFindings: the verdicts about policies and samples that got wrong ones.
func TestFindings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/findings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []finding
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	on := server(t)
	for _, each := range all {
		t.Run(each.Name, func(t *testing.T) {
			validation := map[string]any{"expression": each.Expression, "message": "it is bad"}
			if each.Message != nil {
				delete(validation, "message")
			}
			const version = "admissionregistration.k8s.io/v1"
			meta := map[string]any{"name": "rule"}
			s := policy.Subject{Good: manifests(t, each.Good...), Policies: manifests(t,
				map[string]any{"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": meta, "spec": map[string]any{
					"matchConstraints": map[string]any{"resourceRules": each.Rules}, "validations": []any{validation},
				}},
				map[string]any{"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta, "spec": map[string]any{
					"policyName": "rule", "validationActions": []string{"Deny"},
				}},
			)}
			if s.Given = manifests(t, each.Given...); len(each.Policies) > 0 {
				s.Policies = manifests(t, each.Policies...)
			}
			for _, bad := range each.Bad {
				s.Bad = append(s.Bad, policy.Bad{Object: manifests(t, bad), Denied: "it is bad"})
			}
			for _, each := range each.Requests {
				request := policy.Request{Object: manifests(t, each.Object), Denied: each.Denied}
				if each.Old != nil {
					request.Old = manifests(t, each.Old)
				}
				s.Requests = append(s.Requests, request)
			}
			var only []string
			for id := range each.Want {
				only = append(only, id)
			}
			report, _ := judged(t, on.Check(t.Context(), s, policy.Only(only...)))
			for _, got := range report.Outcomes {
				verdict, reason, _ := strings.Cut(each.Want[got.Rule.ID], ": ")
				same := string(got.Verdict) == verdict || verdict == "" && got.Verdict != framework.Fail && got.Verdict != framework.Errored
				if !same || !strings.Contains(got.Reason, reason) {
					t.Errorf("%s is %s: %s; want %s", got.Rule, got.Verdict, got.Reason, each.Want[got.Rule.ID])
				}
			}
		})
	}
}

// manifests writes a file with objects.
func manifests(t *testing.T, objects ...any) policy.Manifests {
	t.Helper()
	var all []string
	for _, each := range objects {
		text, err := json.Marshal(each)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return file(t, strings.Join(all, "\n---\n"))
}

// A run waits for params with a ConfigMap. A policy that refuses it while its param is missing does not end the run: it
// did for C-0012 of cel-admission-library.
func TestFindingPolicyForConfigMaps(t *testing.T) {
	s := limits(t, "[resourcequotas]", "[resourcequotas, configmaps]", "object.spec != oldObject.spec", "object.?spec != oldObject.?spec",
		"object.spec.?hard", "object.?spec.?hard")
	report, failed := verdicts(t, s)
	if len(failed) > 0 {
		t.Errorf("it breaks %v; want nothing", failed)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Rule.Is("PO-BIND-2") && outcome.Verdict != framework.Pass {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
}

// A Pod in a namespace that only the sample names is accepted, and so is a ServiceAccount that every namespace has.
func TestFindingAccounts(t *testing.T) {
	s := subject(t, validating(manifest("images")))
	in := func(manifest, namespace string) string {
		return strings.Replace(manifest, "metadata: {name: p,", "metadata: {name: p, namespace: "+namespace+",", 1)
	}
	image := func(name string) string { return strings.ReplaceAll(manifest("pod"), "IMAGE", name) }
	s.Good = file(t, in(image("registry.example.com/a"), "default")+"---"+in(image("registry.example.com/a"), "contract-other")+
		"---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: contract-third}}")
	report, failed := verdicts(t, s, policy.Only("PO-VERDICT-1"))
	if len(failed) > 0 || report.NotAccepted == report.Requests {
		t.Errorf("it breaks %v", failed)
	}
}
