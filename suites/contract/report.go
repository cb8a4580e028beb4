package contract

import "github.com/admissiontest/admissiontest/internal/rule"

// Outcome is the result of checking one rule. Its method Text describes it for the log of a test. The fields are:
//
//	Rule      the rule
//	Verdict   see below
//	Reason    how the plugin breaks the rule, or an explanation of another verdict; empty for Pass
//	Waiver    the reason of the waiver; empty means that the rule is not waived
//	Duration  how long the check took
//
// The Verdict is one of:
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
// Skipped: the rule is waived, and without the waiver the verdict would be Fail, Errored or Inconclusive.
//
// Errored: the Subject lacks a request that the rule needs, or the Plan does not have the rule.
type Outcome = rule.Outcome

// Report has the results for a Subject.
type Report struct {
	// Subject is the name of the Subject.
	Subject string
	// Misuse says what is wrong with the Subject or the options. Empty means nothing.
	Misuse []string
	// Outcomes has one Outcome for each selected rule, in the order of the checks.
	Outcomes []Outcome
}
