package policy_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/policy"
)

func verdicts(t *testing.T, s policy.Subject, options ...policy.Option) (report policy.Report, failed []string) {
	t.Helper()
	return judged(t, policy.Check(t.Context(), s, options...))
}

// judged logs what fails in a report, and returns the rules.
func judged(t *testing.T, report policy.Report) (_ policy.Report, failed []string) {
	t.Helper()
	for _, misuse := range report.Misuse {
		if strings.Contains(misuse, "does not serve admissionregistration.k8s.io/v1 MutatingAdmissionPolicy ") {
			t.Skip("the API server has no MutatingAdmissionPolicy")
		}
		t.Error(misuse)
	}
	if report.Err != nil {
		t.Error(report.Err)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored {
			failed = append(failed, outcome.Rule.ID)
			t.Log(outcome.Text("the policies"))
		}
	}
	return report, failed
}

// The sound policy obeys all rules, and none is inconclusive.
func TestSound(t *testing.T) {
	report, failed := judged(t, checkAsServed(t, server(t), subject(t, manifest("images")), manifest("images")))
	if len(failed) > 0 {
		t.Errorf("the sound policy breaks %v", failed)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Verdict != framework.Pass && outcome.Verdict != framework.Unsupported {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
	t.Logf("%d requests, %d not accepted", report.Requests, report.NotAccepted)
}

// So do others: for a kind with two versions, with a param, for a kind with the subresource scale, and for a template.
func TestOtherSound(t *testing.T) {
	for name, s := range map[string]policy.Subject{"versions": scalers(t, manifest("scalers")), "params": limits(t), "scale": replicas(t, manifest("replicas")), "templates": templates(t, manifest("templates"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, failed := verdicts(t, s)
			if len(failed) > 0 {
				t.Errorf("the sound policy breaks %v", failed)
			}
			for _, outcome := range report.Outcomes {
				if outcome.Verdict == framework.Inconclusive {
					t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
				}
			}
		})
	}
}

// Two policies with the same result in either order are sound.
func TestOrders(t *testing.T) {
	t.Parallel()
	report := policy.Check(t.Context(), subject(t, manifest("images")+strings.ReplaceAll(manifest("second"), "LABEL", "second")))
	report, failed := judged(t, report)
	if len(failed) > 0 {
		t.Errorf("the sound policies break %v", failed)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Verdict == framework.Inconclusive || outcome.Rule.ID == "PO-MUT-2" && outcome.Verdict != framework.Pass {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
}

// chosen are a Pod, a Service and a Job: the API server chooses the name of a volume, an address and labels.
const chosen = `
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}], selector: {a: b}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
`

// What the API server chooses itself is no change of a policy, and a change of a policy is found in each of these kinds.
func TestChosenByTheAPIServer(t *testing.T) {
	t.Parallel()
	on := server(t)
	const rules = `[{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods, services]}, {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]`
	const onPods = "[" + ofPods + "]"
	sound := strings.ReplaceAll(manifest("second"), onPods, rules)
	other := strings.NewReplacer("name: second", "name: other", "policyName: second", "policyName: other", `"second": "yes"`, `"other": "yes"`).Replace(sound)
	for name, test := range map[string]struct {
		policies string
		want     []string
	}{
		"sound":                {strings.ReplaceAll(sound, "LABEL", "second") + strings.ReplaceAll(other, "LABEL", "other"), nil},
		"in one order":         {strings.ReplaceAll(sound, "LABEL", "other") + strings.ReplaceAll(other, "LABEL", "other"), []string{"PO-MUT-2"}},
		"again":                {strings.NewReplacer("LABEL", "none", `"yes"`, `"second" in object.metadata.?labels.orValue({}) ? "twice" : "once"`).Replace(sound), []string{"PO-MUT-1"}},
		"labels of a template": {strings.NewReplacer("LABEL", "none", `Object{metadata: Object.metadata{labels: {"second": "yes"}}}`, `Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{labels: {"second": "yes"}}}}}`, rules, `[{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]`).Replace(sound), nil},
		"in an owned object":   {strings.NewReplacer("LABEL", "none", `Object{metadata: Object.metadata{labels: {"second": "yes"}}}`, `!has(object.spec.template) ? Object{} : Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{annotations: {"a": has(object.metadata.ownerReferences) ? "owned" : "free"}}}}}`, rules, `[{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]`).Replace(sound), []string{"PO-MUT-8"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := on.Check(t.Context(), policy.Subject{Policies: file(t, test.policies), Good: file(t, chosen)}, policy.Only("PO-MUT-1", "PO-MUT-2", "PO-MUT-5", "PO-MUT-8"))
			report, failed := judged(t, report)
			if !slices.Equal(failed, test.want) {
				t.Errorf("they break %v, want %v", failed, test.want)
			}
			for _, outcome := range report.Outcomes {
				if outcome.Verdict == framework.Inconclusive {
					t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
				}
			}
		})
	}
}

// server returns an API server for the Subjects of a test, one after the other.
func server(t *testing.T) *policy.Server {
	t.Helper()
	s := &policy.Server{}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

const mutating = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\n"

// validating returns policies without the MutatingAdmissionPolicy at their end, which API servers before 1.36 do not serve.
func validating(policies string) string {
	before, _, _ := strings.Cut(policies, mutating)
	return before
}

// checkAsServed checks a Subject without its MutatingAdmissionPolicy, if the API server does not serve the kind, as before
// 1.36. The test is skipped if it is about this policy.
func checkAsServed(t *testing.T, on *policy.Server, s policy.Subject, text string) policy.Report {
	t.Helper()
	report := on.Check(t.Context(), s)
	if !strings.Contains(strings.Join(report.Misuse, ""), "does not serve admissionregistration.k8s.io/v1 MutatingAdmissionPolicy") {
		return report
	}
	before, rest, _ := strings.Cut(text, mutating)
	_, after, _ := strings.Cut(rest, "spec: {policyName: marked}\n")
	if strings.Contains(t.Name(), "PO-MUT") || before == "" || strings.Contains(rest, "markd") {
		t.Skip("the API server has no MutatingAdmissionPolicy")
	}
	s.Policies = file(t, before+after)
	return on.Check(t.Context(), s)
}

// Each faulty policy breaks its rules and no others, and each rule has one.
func TestFaulty(t *testing.T) {
	t.Parallel()
	on := server(t)
	broken := map[string]bool{}
	subjects := faultySubjects(t)
	texts := faulty()
	for names, text := range texts {
		subjects[names] = subject(t, text)
	}
	for _, names := range slices.Sorted(maps.Keys(subjects)) {
		s := subjects[names]
		want := slices.DeleteFunc(strings.Fields(names), func(word string) bool { return !strings.HasPrefix(word, "PO-") })
		for _, id := range want {
			broken[id] = true
		}
		t.Run(names, func(t *testing.T) {
			_, failed := judged(t, checkAsServed(t, on, s, texts[names]))
			slices.Sort(failed)
			if !slices.Equal(failed, want) {
				t.Errorf("it breaks %v; want %v", failed, want)
			}
		})
	}
	for _, each := range policy.Rules() {
		if !broken[each.ID] {
			t.Errorf("no faulty policy breaks %s", each)
		}
	}
}

// What is wrong with a Subject is said once, with the object; nothing is judged.
func TestMisuse(t *testing.T) {
	good := strings.ReplaceAll(manifest("pod"), "IMAGE", "registry.example.com/a")
	for name, test := range map[string]struct {
		change func(*testing.T, *policy.Subject)
		want   string
	}{
		"no policy":  {func(t *testing.T, s *policy.Subject) { s.Policies = file(t, good) }, "there is no ValidatingAdmissionPolicy"},
		"no good":    {func(t *testing.T, s *policy.Subject) { s.Good = policy.Manifests{} }, "there is no good object"},
		"no message": {func(t *testing.T, s *policy.Subject) { s.Bad[0].Denied = "" }, "bad[0] has no message"},
		"two objects": {func(t *testing.T, s *policy.Subject) {
			s.Bad[0].Object = file(t, good+"---"+strings.Replace(good, "name: p", "name: q", 1))
		}, "bad[0]: got 2 objects; want one"},
		"no file": {func(t *testing.T, s *policy.Subject) { s.Good = policy.Files("testdata/none.yaml") }, "testdata/none.yaml"},
		"no kind": {func(t *testing.T, s *policy.Subject) { s.Good = file(t, "a: 1") }, "manifests.yaml:1:1: "},
		"no YAML": {func(t *testing.T, s *policy.Subject) { s.Good = file(t, "a: [") }, "manifests.yaml:1:"},
		"does not compile": {func(t *testing.T, s *policy.Subject) {
			s.Policies = file(t, strings.ReplaceAll(manifest("images"), "variables.all.all(", "variables.all.al("))
		}, "manifests.yaml:16:7: install ValidatingAdmissionPolicy images: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, manifest("images"))
			test.change(t, &s)
			report := policy.Check(t.Context(), s)
			if len(report.Outcomes) > 0 || !strings.Contains(strings.Join(report.Misuse, "\n"), test.want) {
				t.Errorf("misuse %q; want %q, and no outcomes", report.Misuse, test.want)
			}
		})
	}
	t.Run("unknown rule", func(t *testing.T) {
		report := policy.Check(t.Context(), subject(t, manifest("images")), policy.Only("PO-ERR-11"), policy.Waive("no-evaluation-error", ""))
		if text := strings.Join(report.Misuse, "\n"); !strings.Contains(text, `"PO-ERR-11", did you mean`) && !strings.Contains(text, "PO-ERR-1") || !strings.Contains(text, "has no reason") {
			t.Errorf("misuse: %s", text)
		}
	})
	t.Run("kind that is not served", func(t *testing.T) {
		s := subject(t, validating(manifest("images")))
		s.Good = file(t, good+"---\n{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}")
		report, failed := verdicts(t, s, policy.Only("PO-VERDICT-1"))
		if !slices.Equal(failed, []string{"PO-VERDICT-1"}) || report.Outcomes[0].Verdict != framework.Errored || !strings.Contains(report.Outcomes[0].Reason, "good[1]") {
			t.Errorf("%+v", report.Outcomes)
		}
	})
}

// With a waiver the rule is skipped, and the other rules are judged.
func TestWaive(t *testing.T) {
	report, failed := verdicts(t, subject(t, validating(faulty()["PO-DOOR-2"])), policy.Waive("sibling-lists", "there are no init containers"), policy.Only("PO-DOOR-2", "PO-DOOR-1"))
	if len(failed) > 0 || len(report.Outcomes) != 2 || report.Outcomes[1].Verdict != framework.Skipped {
		t.Errorf("%v, %+v", failed, report.Outcomes)
	}
}

// A sample that no policy is evaluated for proves nothing: no rule about evaluation passes.
func TestNotEvaluated(t *testing.T) {
	s := subject(t, validating(manifest("images")))
	s.Good, s.Bad = file(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}"), nil
	report, failed := verdicts(t, s, policy.Only("PO-VERDICT-1", "PO-ERR-1", "PO-BIND-1"))
	for _, outcome := range report.Outcomes {
		if outcome.Verdict != framework.Inconclusive {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
	if len(failed) > 0 || len(report.Outcomes) != 3 {
		t.Errorf("failed %v of %d", failed, len(report.Outcomes))
	}
}

// Without the param, nothing is known if a policy guards it.
func TestGuardedParam(t *testing.T) {
	policies := manifest("limits") + strings.NewReplacer("[pods]", "[configmaps]", "EXPRESSION", "oldObject.metadata.name != 'most'").Replace(manifest("guarded"))
	s := limits(t)
	s.Policies = file(t, strings.ReplaceAll(policies, "parameterNotFoundAction: Deny", "parameterNotFoundAction: Allow"))
	report, failed := verdicts(t, s, policy.Only("PO-BIND-2"))
	if len(failed) > 0 || len(report.Outcomes) != 1 || report.Outcomes[0].Verdict != framework.Inconclusive || !strings.Contains(report.Outcomes[0].Reason, "a param could not be deleted") {
		t.Errorf("got %+v", report.Outcomes)
	}
}
