package contract_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

func TestContract(t *testing.T) { contract.Run(t, subject()) }

// TestNamesOfRules: IDs and names are unique and have their form.
func TestNamesOfRules(t *testing.T) {
	seen := map[string]bool{}
	id, name := regexp.MustCompile(`^[A-Z][0-9]$`), regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	for _, rule := range contract.Rules() {
		if !id.MatchString(rule.ID) || !name.MatchString(rule.Name) || seen[rule.ID] || seen[rule.Name] {
			t.Errorf("rule %q has a bad name or one of another rule", rule)
		}
		seen[rule.ID], seen[rule.Name] = true, true
		if rule.Title == "" || rule.Why == "" || rule.Fix == "" || len(rule.Source) == 0 || rule.Level == "" {
			t.Errorf("%s: got %+v, want a title, a reason, how to fix it, a source and a level", rule, rule)
		}
	}
}

// TestOptionsTakeBothNames: an ID and a name select and waive the same rule.
func TestOptionsTakeBothNames(t *testing.T) {
	for _, name := range []string{"A1", "admit-is-idempotent"} {
		t.Run(name, func(t *testing.T) {
			report := contract.Check(appending(), contract.Only(name), contract.Waive(name, "a test"))
			if len(report.Misuse) > 0 || len(report.Outcomes) != 1 || report.Outcomes[0].Rule.ID != "A1" || report.Outcomes[0].Verdict != framework.Skipped {
				t.Errorf("got %+v, want rule A1 alone, waived", report)
			}
		})
	}
}

// TestMisuse: each mistake in a Subject or in options has its message.
func TestMisuse(t *testing.T) {
	noRequests, noSource := subject(), subject()
	noRequests.Allow, noRequests.Reject = nil, nil
	noSource.Source = harness.Source{}
	noField := subject()
	noField.Enforced = []string{"spec", "metadata.label[team]"}
	for name, test := range map[string]struct {
		subject contract.Subject
		option  contract.Option
		want    string
	}{
		"unknown rule in Only":  {subject(), contract.Only("A99"), `contract.Only: there is no rule "A99"`},
		"unknown rule in Waive": {subject(), contract.Waive("A99", "x"), `contract.Waive: there is no rule "A99"`},
		"waiver without reason": {subject(), contract.Waive("A1", " "), "the waiver of A1 has no reason"},
		"no requests":           {noRequests, nil, "has no requests"},
		"no field":              {noField, nil, `Enforced: no object of its requests can have a field "metadata.label[team]"; want JSON paths`},
		"no source":             {noSource, nil, "build the plugin of Subject Forbidden: "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(contract.NewPlan(test.subject, test.option).Misuse(), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("misuse is %q, want %q in it", got, test.want)
			}
		})
	}
	if got := contract.NewPlan(subject()).Misuse(); len(got) > 0 {
		t.Errorf("misuse of a correct Subject is %q, want none", got)
	}
}

// TestRuleOfAnotherPlan: a rule that the plan does not have is an error.
func TestRuleOfAnotherPlan(t *testing.T) {
	got := contract.NewPlan(subject(), contract.Only("A1")).Check(contract.Rule{ID: "V1"})
	if got.Verdict != framework.Errored || !strings.Contains(got.Reason, `find rule "V1"`) {
		t.Errorf("got %s: %s, want an error that names V1", got.Verdict, got.Reason)
	}
}

// TestUnneededWaiver: a waiver of a rule that the plugin does not break fails.
func TestUnneededWaiver(t *testing.T) {
	got := contract.Check(subject(), contract.Waive("V1", "a test"), contract.Only("V1")).Outcomes[0]
	if got.Verdict != framework.Fail || !strings.Contains(got.Text("Forbidden"), "remove the waiver (\"a test\")") {
		t.Errorf("got %s, want a failure that says to remove the waiver", got.Text("Forbidden"))
	}
}

// TestTextOfSkips: what is no failure is one line, and has the first reason.
func TestTextOfSkips(t *testing.T) {
	for name, test := range map[string]struct {
		outcome contract.Outcome
		want    string
	}{
		"inconclusive": {contract.Check(subject(), contract.Only("A1")).Outcomes[0], "A1 admit-is-idempotent: inconclusive: no request of the Subject reaches"},
		"unsupported":  {contract.Check(subject(), contract.Only("C1")).Outcomes[0], "C1 caches-are-unchanged: unsupported: no informers"},
		"waived":       {contract.Check(appending(), contract.Only("A1"), contract.Waive("A1", "a test")).Outcomes[0], "A1 admit-is-idempotent: waived for Forbidden: a test (create Pod default/p: Admit, reinvoked"},
		"passed":       {contract.Check(subject(), contract.Only("V1")).Outcomes[0], "V1 validate-changes-nothing: pass"},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.outcome.Text("Forbidden")
			if !strings.HasPrefix(got, test.want) || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
				t.Errorf("got %q, want one line that begins with %q", got, test.want)
			}
		})
	}
}

// TestTextOfFailures: a failure says why it matters, and how to fix it.
func TestTextOfFailures(t *testing.T) {
	outcome := contract.Check(appending(), contract.Only("A1")).Outcomes[0]
	for _, want := range []string{"\nwhy it matters: " + outcome.Rule.Why, "\nhow to fix it: " + outcome.Rule.Fix} {
		if got := outcome.Text("Forbidden"); !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// TestWaiverWithADate: after its last day, a waiver does not hide that the plugin breaks the rule.
func TestWaiverWithADate(t *testing.T) {
	for lastDay, want := range map[string]framework.Verdict{"2999-12-31": framework.Skipped, "2001-01-01": framework.Fail} {
		got := contract.Check(appending(), contract.Only("A1"), contract.WaiveUntil("A1", "a test", lastDay)).Outcomes[0]
		if text := got.Text("Forbidden"); got.Verdict != want || want == framework.Fail && !strings.Contains(text, "the waiver ended on 2001-01-01") {
			t.Errorf("until %s: got %s: %s, want %s", lastDay, got.Verdict, text, want)
		}
	}
	report := contract.Check(appending(), contract.Only("A1"), contract.WaiveUntil("A1", "a test", "tomorrow"))
	if got := strings.Join(report.Misuse, "\n"); !strings.Contains(got, `date "tomorrow": want the last day, such as 2027-01-31`) || report.Outcomes[0].Verdict != framework.Fail {
		t.Errorf("got %q and %s, want a message about the date, and a failure", got, report.Outcomes[0].Verdict)
	}
}
