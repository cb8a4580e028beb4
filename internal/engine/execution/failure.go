package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/explain"
	"github.com/admissiontest/admissiontest/internal/engine/infrastructure"
	"github.com/admissiontest/admissiontest/internal/engine/mistake"
	"github.com/admissiontest/admissiontest/internal/engine/unseen"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Failure is why a step failed. For an error of Arrange, it has only Err.
type Failure struct {
	// Err is set if the step could not be carried out.
	Err error

	// step is the number of the step in its scenario, and line the line in its file, from 1.
	step, line int
	// evidence is what was observed, if that is known already.
	evidence   *report.Evidence
	action     string
	mismatches []judge.Mismatch
	result     framework.Result
	// expect is what the mismatches are about, if there are any.
	expect *scenario.Expectation
	// request is the request of the step, if it sent one.
	request *framework.Request
	// notSaid is what the API server would have to say, and does not.
	notSaid string
	// unauthorized describes a refusal of the authorizer, which says nothing about admission.
	unauthorized string
	// codeExpected is true if the step names the code of the response.
	codeExpected bool
	// control is true if the step is a control.
	control bool
	// unobserved is what was expected and could not be observed.
	unobserved string
}

// String describes the failure in one line.
func (f *Failure) String() string {
	if f.Err != nil {
		return fmt.Sprintf("%s: %v", f.action, f.Err)
	}
	return fmt.Sprintf("%s: %s", f.action, f.mismatches[0])
}

// Outcome returns the outcome of the scenario after a failure of Act.
func (c *Case) Outcome(f *Failure) report.Outcome {
	verdict := framework.Fail
	var foreign *ForeignError
	switch {
	case errors.Is(f.Err, framework.ErrForeign), errors.Is(f.Err, framework.ErrNotServed):
		verdict = framework.Unsupported
	case errors.Is(f.Err, framework.ErrTimeout), errors.Is(f.Err, context.DeadlineExceeded), errors.As(f.Err, new(*unseen.Error)), errors.As(f.Err, &foreign):
		verdict = framework.Inconclusive
	case f.Err != nil:
		verdict = framework.Errored
	case f.notSaid != "", f.unauthorized != "", f.control:
		verdict = framework.Inconclusive
	}
	reason := fmt.Sprintf("step %d (line %d): %s", f.step, f.line, f)
	if unknown := cmp.Or(f.unauthorized, f.notSaid); f.Err == nil && unknown != "" {
		reason = fmt.Sprintf("step %d (line %d): %s: %s", f.step, f.line, f.action, unknown)
	}
	switch {
	case f.control && f.Err == nil:
		reason += " (this step is a control: without it, the other steps do not show whether the requirement holds)"
	case mistake.Is(f.Err):
		reason = f.Err.Error() // it begins with the position
	case foreign != nil:
		reason = foreign.Error() // the same for all scenarios
	}
	outcome := report.Outcome{
		Verdict:   verdict,
		Reason:    reason,
		NotServed: notServed(f.Err),
		Mistake:   mistake.Is(f.Err),
		Evidence:  c.evidence(f),
	}
	if verdict == framework.Fail {
		outcome.Cause = f.cause(outcome.Evidence)
	}
	return outcome
}

// NotArranged returns the outcome of the scenario after an error of Arrange.
func NotArranged(err error) report.Outcome {
	if foreign := (*ForeignError)(nil); errors.As(err, &foreign) {
		return foreign.Outcome()
	}
	verdict := framework.Errored
	if errors.Is(err, framework.ErrForeign) || errors.Is(err, framework.ErrNotServed) {
		verdict = framework.Unsupported
	}
	outcome := report.Outcome{Verdict: verdict, Reason: "setup: " + err.Error(), NotServed: notServed(err)}
	if mistake.Is(err) {
		outcome.Reason, outcome.Mistake = err.Error(), true
	}
	return outcome
}

// evidence returns what was observed.
func (c *Case) evidence(f *Failure) *report.Evidence {
	if f.evidence != nil {
		return f.evidence
	}
	found := explain.Of(explain.Step{
		Number: f.step, Line: f.line, Action: f.action, Request: f.request, Result: f.result, Mismatches: f.mismatches, Expect: f.expect,
	}, explain.Options{
		ID: c.ID, NotSeen: c.Unseen.Report(), Audit: c.target.Optional().Audit, Explain: c.explain, Secrets: c.secrets,
	})
	if f.request != nil {
		found.Warnings = c.typeWarnings(*f.request, found.Decisions)
		c.positioned(found)
	}
	return found
}

// notServed returns what the API server does not serve according to an error, or "".
func notServed(err error) string {
	var not *framework.NotServedError
	if errors.As(err, &not) {
		return not.Name
	}
	return ""
}

// infrastructure returns why a failure comes from the infrastructure, or "": the API server
// was overloaded, could not reach its storage or did not respond, or something could not
// be observed.
func (f *Failure) infrastructure() string {
	switch {
	case f.Err != nil:
		return infrastructure.OfError(f.Err)
	case f.unauthorized != "":
		return ""
	case f.unobserved != "":
		return f.unobserved
	case len(f.mismatches) == 0:
		return ""
	default:
		return infrastructure.OfResponse(f.result.Status, f.codeExpected)
	}
}

// NothingAboutAdmission returns why a failure says nothing about what the scenario tests, or "": the
// infrastructure failed. The scenario is repeated then.
func (c *Case) NothingAboutAdmission(f *Failure) string { return f.infrastructure() }
