package rule

import (
	"fmt"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

// Outcome is the outcome of checking one rule. The suites document its fields.
type Outcome struct {
	Rule     Rule
	Verdict  framework.Verdict
	Reason   string
	Waiver   string
	Duration time.Duration

	suite  string // the package whose option Waive waives the rule
	waived waiving
}

// waiving is why a waived rule fails.
type waiving int

const (
	notNeeded waiving = iota // the Subject does not break the rule
	ended                    // the last day of the waiver is over
)

// Text describes the outcome. For the verdicts Fail and Errored it has the rule, one line for each
// way in which requests break the rule, the details of the first of them, why the rule matters, how to fix the Subject and how to waive the rule. For other verdicts, and
// for a waiver that is not needed, it is one line. Subject is the name of the plugin or webhook.
func (o Outcome) Text(subject string) string {
	first, _, _ := strings.Cut(o.Reason, "\n")
	switch {
	case o.Waiver != "" && o.Verdict == framework.Fail && o.waived == ended:
		return fmt.Sprintf("%s (%s): %s, and %s breaks the rule: fix it, or waive the rule again (%q)\n", o.Rule, o.Rule.Level, first, subject, o.Waiver)
	case o.Waiver != "" && o.Verdict == framework.Fail:
		return fmt.Sprintf("%s (%s): waived, but %s does not break the rule: remove the waiver (%q)\n", o.Rule, o.Rule.Level, subject, o.Waiver)
	case o.Waiver != "" && o.Verdict == framework.Skipped:
		return fmt.Sprintf("%s: waived for %s: %s (%s)\n", o.Rule, subject, o.Waiver, first)
	case o.Verdict != framework.Fail && o.Verdict != framework.Errored:
		return fmt.Sprintf("%s: %s: %s\n", o.Rule, o.Verdict, first)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n%s: %s\n", o.Rule, o.Rule.Level, o.Rule.Title, o.Verdict, o.Reason)
	if o.Rule.Title == "" {
		return b.String() // the Plan does not have the rule
	}
	fmt.Fprintf(&b, "why it matters: %s\nhow to fix it: %s\n", o.Rule.Why, o.Rule.Fix)
	for _, source := range o.Rule.Source {
		fmt.Fprintf(&b, "see %s\n", source)
	}
	fmt.Fprintf(&b, "if this is intended: %s.Waive(%q, \"why\")\n", o.suite, o.Rule.Name)
	return b.String()
}

// Test is the part of testing.TB that Tell uses.
type Test interface {
	Helper()
	Error(args ...any)
	Skip(args ...any)
}

// Tell makes a test have a verdict: Fail and Errored fail it, and each other verdict but Pass skips it. Text describes
// the outcome.
func Tell(t Test, verdict framework.Verdict, text string) {
	t.Helper()
	switch verdict {
	case framework.Pass:
	case framework.Fail, framework.Errored:
		t.Error(text)
	default:
		t.Skip(text)
	}
}

// Summary counts verdicts: "40 pass, 1 fail, 4 unsupported, 2 skipped, 1 inconclusive".
func Summary(count map[framework.Verdict]int) string {
	var parts []string
	for _, verdict := range framework.Verdicts() {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}
