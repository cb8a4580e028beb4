package contract

import (
	"fmt"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// Outcome is the result of checking one rule.
type Outcome struct {
	Rule Rule
	// Verdict is one of:
	//
	// Pass: the plugin does not break the rule.
	//
	// Fail: the plugin breaks the rule, or the rule is waived and the plugin does not break it, or
	// the rule is inconclusive and the option Strict is set.
	//
	// Unsupported: the rule does not apply to the plugin.
	//
	// Inconclusive: no request reached the code that the rule is about, or no plugin could be
	// built.
	//
	// Skipped: the rule is waived, and without the waiver the verdict would be Fail or Errored.
	//
	// Errored: the Subject lacks a request that the rule needs, or the Plan does not have the rule.
	Verdict framework.Verdict
	// Reason says how the plugin breaks the rule, or explains another verdict. Empty for Pass.
	Reason string
	// Waiver is the reason of the waiver. Empty means that the rule is not waived.
	Waiver string
	// Log has the last lines that were logged with klog during the check.
	Log string
	// Duration is how long the check took.
	Duration time.Duration
}

// Report has the results for a Subject.
type Report struct {
	// Subject is the name of the Subject.
	Subject string
	// Misuse says what is wrong with the Subject or the options. Empty means nothing.
	Misuse []string
	// Outcomes has one Outcome for each selected rule, in the order of the checks.
	Outcomes []Outcome
}

// Text describes the outcome. For the verdicts Fail and Errored it has the rule, one line for each
// way in which requests break the rule, the details of the first of them, the log of the plugin,
// why the rule matters, how to fix the plugin and how to waive the rule. For other verdicts, and
// for a waiver that is not needed, it is one line. Subject is the name of the plugin.
func (o Outcome) Text(subject string) string {
	first, _, _ := strings.Cut(o.Reason, "\n")
	switch {
	case o.Waiver != "" && o.Verdict == framework.Fail:
		return fmt.Sprintf("%s (%s): waived, but %s does not break the rule: remove the waiver (%q)\n", o.Rule, o.Rule.Level, subject, o.Waiver)
	case o.Waiver != "" && o.Verdict == framework.Skipped:
		return fmt.Sprintf("%s: waived for %s: %s (%s)\n", o.Rule, subject, o.Waiver, first)
	case o.Verdict != framework.Fail && o.Verdict != framework.Errored:
		return fmt.Sprintf("%s: %s: %s\n", o.Rule, o.Verdict, first)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n%s: %s\n", o.Rule, o.Rule.Level, o.Rule.Title, o.Verdict, o.Reason)
	if o.Log != "" {
		fmt.Fprintf(&b, "klog during the check:\n%s\n", o.Log)
	}
	if o.Rule.Title == "" {
		return b.String() // the Plan does not have the rule
	}
	fmt.Fprintf(&b, "why it matters: %s\nhow to fix it: %s\n", o.Rule.Why, o.Rule.Fix)
	for _, source := range o.Rule.Source {
		fmt.Fprintf(&b, "see %s\n", source)
	}
	fmt.Fprintf(&b, "if this is intended: contract.Waive(%q, \"why\")\n", o.Rule.Name)
	return b.String()
}

func publicOutcome(o check.Outcome) Outcome {
	return Outcome{Rule: publicRule(o.Rule), Verdict: o.Verdict, Reason: o.Reason, Waiver: o.Waiver, Log: o.Log, Duration: o.Duration}
}

// summary counts verdicts: "40 pass, 1 fail, 4 unsupported, 2 skipped, 1 inconclusive".
func summary(count map[framework.Verdict]int) string {
	var parts []string
	for _, verdict := range framework.Verdicts() {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}
