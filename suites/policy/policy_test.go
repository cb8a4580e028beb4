package policy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// sound obeys all rules: images of Pods come from one registry.
const sound = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: images}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
      - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/ephemeralcontainers]}
  matchConditions:
    - {name: changed, expression: "oldObject == null || object.spec != oldObject.spec"}
  variables:
    - {name: all, expression: "dyn(object.spec.containers) + dyn(object.spec.?initContainers.orValue([])) + dyn(object.spec.?ephemeralContainers.orValue([]))"}
  validations:
    - expression: "variables.all.all(c, c.image.startsWith('registry.example.com/'))"
      message: images must come from registry.example.com/
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: images}
spec: {policyName: images, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: marked}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"marked": "yes"}}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: marked}
spec: {policyName: marked}
`

// guarded is a further policy for the deletion of Pods, with its binding.
const guarded = `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: guarded}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]}
  validations: [{expression: "EXPRESSION", message: this Pod stays}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: guarded}
spec: {policyName: guarded, validationActions: [Deny]}
`

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {exempt: "no"}}
spec:
  automountServiceAccountToken: false
  tolerations: [{key: a, operator: Exists}]
  containers: [{name: c, image: IMAGE, resources: {limits: {memory: 64Mi}}}]
`

// file writes a file with manifests.
func file(t *testing.T, text string) policy.Manifests {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Files(name)
}

func subject(t *testing.T, policies string) policy.Subject {
	t.Helper()
	return policy.Subject{
		Policies: file(t, policies), Good: file(t, strings.ReplaceAll(pod, "IMAGE", "registry.example.com/a")),
		Bad: []policy.Bad{{Object: file(t, strings.ReplaceAll(pod, "IMAGE", "example.org/a")), Denied: "registry.example.com/"}},
	}
}

// faulty are changes of the sound policy. Each breaks the rules with which it begins, and no other.
func faulty() map[string]string {
	change := func(pairs ...string) string {
		text := sound
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				panic("the sound policy has no " + pairs[i])
			}
			text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
		}
		return text
	}
	validation := "      message: images must come from registry.example.com/\n"
	return map[string]string{
		"PO-VERDICT-1": change("'registry.example.com/'", "''"),
		"PO-ERR-1":     change(validation, validation+"    - {expression: \"object.metadata.labels.exempt != 'maybe'\", message: maybe}\n"),
		"PO-ERR-1 PO-ERR-2": change("failurePolicy: Fail\n  matchConstraints:\n", "failurePolicy: Ignore\n  matchConstraints:\n",
			"startsWith('registry.example.com/'))", "startsWith('registry.example.com/')) || object.metadata.labels.exempt == 'yes'"),
		"PO-ERR-4":  change(validation, validation+"    - {expression: \"!has(object.spec.hostNetwrk)\", message: no host network}\n"),
		"PO-ERR-5":  sound + strings.ReplaceAll(guarded, "EXPRESSION", "object.metadata.name != 'keep'"),
		"PO-ERR-6":  change(validation, ""),
		"PO-DOOR-1": change("operations: [CREATE, UPDATE], resources: [pods]}", "operations: [CREATE], resources: [pods]}"),
		"PO-DOOR-2": change(" + dyn(object.spec.?initContainers.orValue([]))", ""),
		"PO-DOOR-3": change("      - {apiGroups: [\"\"], apiVersions: [v1], operations: [UPDATE], resources: [pods/ephemeralcontainers]}\n", ""),
		"PO-DOOR-6": change("startsWith('registry.example.com/'))", "startsWith('registry.example.com/')) || has(object.metadata.generateName)"),
		"PO-LIFE-1": change("|| object.spec != oldObject.spec", "|| !has(object.metadata.deletionTimestamp)"),
		"PO-LIFE-2": change("|| object.spec != oldObject.spec", "|| object.spec != oldObject.spec || has(object.metadata.deletionTimestamp)"),
		"PO-LIFE-3": sound + strings.ReplaceAll(guarded, "EXPRESSION", "request.userInfo.username == 'contract-requester'"),
		"PO-MUT-1": change("patchType: ApplyConfiguration", "patchType: JSONPatch",
			`applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"marked": "yes"}}}'}`,
			`jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "b" + string(size(object.spec.tolerations)), operator: "Exists"}}]'}`),
		"PO-MUT-4": change("operations: [CREATE], resources: [pods]}]}\n  mutations", "operations: [CREATE, UPDATE], resources: [pods]}]}\n  mutations",
			`Object{metadata: Object.metadata{labels: {"marked": "yes"}}}`, `Object{spec: Object.spec{hostname: "always"}}`),
		"PO-BIND-1": change("spec: {policyName: marked}", "spec: {policyName: markd}"),
	}
}

func verdicts(t *testing.T, s policy.Subject, options ...policy.Option) (report policy.Report, failed []string) {
	t.Helper()
	report = policy.Check(t.Context(), s, options...)
	for _, misuse := range report.Misuse {
		t.Error(misuse)
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
	report, failed := verdicts(t, subject(t, sound))
	if len(failed) > 0 {
		t.Errorf("the sound policy breaks %v", failed)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Verdict != framework.Pass && outcome.Rule.ID != "PO-ERR-2" && outcome.Rule.ID != "PO-ERR-5" && outcome.Rule.ID != "PO-LIFE-3" {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
	t.Logf("%d requests, %d not accepted", report.Requests, report.NotAccepted)
}

// Each faulty policy breaks its rules and no others, and each rule has one.
func TestFaulty(t *testing.T) {
	broken := map[string]bool{}
	for names, text := range faulty() {
		want := strings.Fields(names)
		for _, id := range want {
			broken[id] = true
		}
		t.Run(names, func(t *testing.T) {
			_, failed := verdicts(t, subject(t, text))
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
	good := strings.ReplaceAll(pod, "IMAGE", "registry.example.com/a")
	for name, test := range map[string]struct {
		change func(*testing.T, *policy.Subject)
		want   string
	}{
		"no policy":  {func(t *testing.T, s *policy.Subject) { s.Policies = file(t, good) }, "has no ValidatingAdmissionPolicy"},
		"no good":    {func(t *testing.T, s *policy.Subject) { s.Good = nil }, "Subject.Good is empty"},
		"no message": {func(t *testing.T, s *policy.Subject) { s.Bad[0].Denied = "" }, "Subject.Bad[0].Denied is empty"},
		"two objects": {func(t *testing.T, s *policy.Subject) {
			s.Bad[0].Object = file(t, good+"---"+strings.Replace(good, "name: p", "name: q", 1))
		}, "Subject.Bad[0].Object: got 2 objects; want one"},
		"no file": {func(t *testing.T, s *policy.Subject) { s.Good = policy.Files("testdata/none.yaml") }, "testdata/none.yaml"},
		"no kind": {func(t *testing.T, s *policy.Subject) { s.Good = file(t, "a: 1") }, "manifests.yaml:1:1: "},
		"no YAML": {func(t *testing.T, s *policy.Subject) { s.Good = file(t, "a: [") }, "manifests.yaml:1:"},
		"does not compile": {func(t *testing.T, s *policy.Subject) {
			s.Policies = file(t, strings.ReplaceAll(sound, "variables.all.all(", "variables.all.al("))
		}, "manifests.yaml:16:7: install ValidatingAdmissionPolicy images: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, sound)
			test.change(t, &s)
			report := policy.Check(t.Context(), s)
			if len(report.Outcomes) > 0 || !strings.Contains(strings.Join(report.Misuse, "\n"), test.want) {
				t.Errorf("misuse %q; want %q, and no outcomes", report.Misuse, test.want)
			}
		})
	}
	t.Run("unknown rule", func(t *testing.T) {
		report := policy.Check(t.Context(), subject(t, sound), policy.Only("PO-ERR-11"), policy.Waive("no-evaluation-error", ""))
		if text := strings.Join(report.Misuse, "\n"); !strings.Contains(text, `"PO-ERR-11", did you mean`) && !strings.Contains(text, "PO-ERR-1") || !strings.Contains(text, "has no reason") {
			t.Errorf("misuse: %s", text)
		}
	})
	t.Run("kind that is not served", func(t *testing.T) {
		s := subject(t, sound)
		s.Good = file(t, good+"---\n{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}")
		report, failed := verdicts(t, s, policy.Only("PO-VERDICT-1"))
		if !slices.Equal(failed, []string{"PO-VERDICT-1"}) || report.Outcomes[0].Verdict != framework.Errored || !strings.Contains(report.Outcomes[0].Reason, "good[1]") {
			t.Errorf("%+v", report.Outcomes)
		}
	})
}

// With a waiver the rule is skipped, and the other rules are judged.
func TestWaive(t *testing.T) {
	report, failed := verdicts(t, subject(t, faulty()["PO-DOOR-2"]), policy.Waive("sibling-lists", "there are no init containers"), policy.Only("PO-DOOR-2", "PO-DOOR-1"))
	if len(failed) > 0 || len(report.Outcomes) != 2 || report.Outcomes[1].Verdict != framework.Skipped {
		t.Errorf("%v, %+v", failed, report.Outcomes)
	}
}

// A sample that no policy is evaluated for proves nothing: no rule about evaluation passes.
func TestNotEvaluated(t *testing.T) {
	s := subject(t, strings.Split(sound, "---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\n")[0])
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
