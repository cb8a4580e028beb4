package engine

import (
	"slices"

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
	outcome.Reason, outcome.NotServed, outcome.Cause = secrets.Text(outcome.Reason), secrets.Text(outcome.NotServed), secrets.Text(outcome.Cause)
	if outcome.Evidence == nil {
		return outcome
	}
	evidence := *outcome.Evidence
	evidence.Action, evidence.Response = secrets.Text(evidence.Action), secrets.Text(evidence.Response)
	evidence.RefusedBy, evidence.Decisions = secrets.Text(evidence.RefusedBy), slices.Clone(evidence.Decisions)
	evidence.Details = secrets.Text(evidence.Details)
	evidence.Causes = slices.Clone(evidence.Causes)
	for i := range evidence.Causes {
		evidence.Causes[i] = secrets.Text(evidence.Causes[i])
	}
	for i := range evidence.Decisions {
		evidence.Decisions[i].Text = secrets.Text(evidence.Decisions[i].Text)
	}
	evidence.Mismatches, evidence.Timeline = slices.Clone(evidence.Mismatches), slices.Clone(evidence.Timeline)
	for i := range evidence.Mismatches {
		one := &evidence.Mismatches[i]
		one.Path, one.Expected, one.Actual = secrets.Text(one.Path), secrets.Text(one.Expected), secrets.Text(one.Actual)
	}
	for i := range evidence.Timeline {
		one := &evidence.Timeline[i]
		one.Summary, one.Request, one.Answer = secrets.Text(one.Summary), secrets.Text(one.Request), secrets.Text(one.Answer)
		one.Patch = slices.Clone(one.Patch)
		for k := range one.Patch {
			one.Patch[k].Path, one.Patch[k].Value = secrets.Text(one.Patch[k].Path), secrets.Text(one.Patch[k].Value)
		}
	}
	outcome.Evidence = &evidence
	return outcome
}
