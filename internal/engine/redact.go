package engine

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Every outcome passes redacted before anything else gets it: the report and the progress.
// The mismatches of a step do not have values of Secrets and the like in the first place:
// see judge.Judge and, for diffs, package evidence. What is left for redacted is text in which a
// server, a webhook or an error repeats them.

// noteSecrets returns a set for the values that the outcome of a scenario does not show, and
// remembers it for redacted.
func (r *run) noteSecrets(s scenario.Scenario) *redact.Set {
	secrets := &redact.Set{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secrets == nil {
		r.secrets = map[string]*redact.Set{}
	}
	r.secrets[s.Metadata.Name] = secrets
	return secrets
}

// redacted returns an outcome without what a report does not show.
func (r *run) redacted(outcome report.Outcome) report.Outcome {
	if r.options.ShowSecrets {
		return outcome
	}
	r.mu.Lock()
	secrets := r.secrets[outcome.Name]
	r.mu.Unlock()
	if secrets == nil {
		secrets = &redact.Set{} // the scenario was not read
	}
	return withTexts(outcome, secrets.Text)
}

// named returns an outcome with the names that the user wrote, instead of those that the run has made of them.
// Every text of an outcome passes it before anything else gets it, as with redacted.
func (r *run) named(outcome report.Outcome) report.Outcome {
	r.mu.Lock()
	c := r.cases[outcome.Name]
	r.mu.Unlock()
	if c == nil || outcome.Verdict == framework.Pass {
		return outcome // the scenario was not read, or there is no text
	}
	names := c.Names()
	outcome = withTexts(outcome, names)
	if outcome.Evidence != nil {
		for i := range outcome.Evidence.Diffs {
			diff := &outcome.Evidence.Diffs[i]
			diff.Lines = replaced(diff.Lines, names)
		}
	}
	return outcome
}

// withTexts returns an outcome whose texts are replaced, except for the diffs.
func withTexts(outcome report.Outcome, text func(string) string) report.Outcome {
	outcome.Reason, outcome.NotServed, outcome.Cause = text(outcome.Reason), text(outcome.NotServed), text(outcome.Cause)
	if outcome.Evidence == nil {
		return outcome
	}
	evidence := *outcome.Evidence
	evidence.Action, evidence.Response = text(evidence.Action), text(evidence.Response)
	evidence.RefusedBy, evidence.Details = text(evidence.RefusedBy), text(evidence.Details)
	evidence.Causes, evidence.Warnings = replaced(evidence.Causes, text), replaced(evidence.Warnings, text)
	evidence.Decisions, evidence.Diffs = slices.Clone(evidence.Decisions), slices.Clone(evidence.Diffs)
	for i := range evidence.Decisions {
		one := &evidence.Decisions[i]
		one.Subject, one.Text = text(one.Subject), text(one.Text)
	}
	evidence.Mismatches, evidence.Timeline = slices.Clone(evidence.Mismatches), slices.Clone(evidence.Timeline)
	for i := range evidence.Mismatches {
		one := &evidence.Mismatches[i]
		one.Path, one.Expected, one.Actual = text(one.Path), text(one.Expected), text(one.Actual)
	}
	for i := range evidence.Timeline {
		one := &evidence.Timeline[i]
		one.Summary, one.Request, one.Answer = text(one.Summary), text(one.Request), text(one.Answer)
		one.Patch = slices.Clone(one.Patch)
		for k := range one.Patch {
			one.Patch[k].Path, one.Patch[k].Value = text(one.Patch[k].Path), text(one.Patch[k].Value)
		}
	}
	outcome.Evidence = &evidence
	return outcome
}

// replaced returns a list with each text replaced.
func replaced(list []string, text func(string) string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = text(list[i])
	}
	return list
}
