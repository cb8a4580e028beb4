package execution

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/evidence"
	"github.com/admissiontest/admissiontest/internal/engine/infrastructure"
	"github.com/admissiontest/admissiontest/internal/engine/mistake"
	"github.com/admissiontest/admissiontest/internal/engine/unseen"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Failure is why a step failed. For an error of Arrange, it has only Err.
type Failure struct {
	// Err is set if the step could not be carried out.
	Err error

	// step is the number of the step in its scenario, and line the line in its file, from 1.
	step, line int
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
	switch {
	case errors.Is(f.Err, framework.ErrForeign), errors.Is(f.Err, framework.ErrNotServed):
		verdict = framework.Unsupported
	case errors.Is(f.Err, framework.ErrTimeout), errors.As(f.Err, new(*unseen.Error)):
		verdict = framework.Inconclusive
	case f.Err != nil:
		verdict = framework.Errored
	case f.notSaid != "", f.unauthorized != "":
		verdict = framework.Inconclusive
	}
	reason := fmt.Sprintf("step %d (line %d): %s", f.step, f.line, f)
	if unknown := cmp.Or(f.unauthorized, f.notSaid); f.Err == nil && unknown != "" {
		reason = fmt.Sprintf("step %d (line %d): %s: %s", f.step, f.line, f.action, unknown)
	}
	if mistake.Is(f.Err) {
		reason = f.Err.Error() // it begins with the position
	}
	return report.Outcome{
		Verdict:   verdict,
		Reason:    reason,
		NotServed: notServed(f.Err),
		Mistake:   mistake.Is(f.Err),
		Evidence:  c.evidence(f),
	}
}

// NotArranged returns the outcome of the scenario after an error of Arrange.
func NotArranged(err error) report.Outcome {
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
	found := evidence.Of(evidence.Step{
		Number: f.step, Line: f.line, Action: f.action, Request: f.request, Result: f.result, Mismatches: f.mismatches, Expect: f.expect,
	}, evidence.Options{
		ID: c.ID, NotSeen: c.Unseen.Report(), Audit: c.target.Optional().Audit, Explain: c.explain, Secrets: c.secrets, ShowSecrets: c.showSecrets,
	})
	if f.request != nil && len(found.Decisions) > 0 {
		found.Warnings = c.typeWarnings(*f.request, found.Decisions)
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

// The refusals of policies and webhooks name them
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go,
// pkg/admission/plugin/webhook/errors/statuserror.go).
var (
	refusedByPolicy  = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding`)
	refusedByWebhook = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
)

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

// NothingAboutAdmission returns why a failure says nothing about what the scenario tests, or
// "": the infrastructure failed, or a policy or webhook of another client refused the request. On an
// API server without other clients, an unknown policy or webhook in a refusal is a failure of the server.
func (c *Case) NothingAboutAdmission(f *Failure) string {
	if cause := f.infrastructure(); cause != "" || c.target.Optional().Confined == nil {
		return cause
	}
	message := ""
	if f.Err != nil {
		message = f.Err.Error()
	} else if len(f.mismatches) > 0 {
		message = f.result.Status.Message
	}
	if found := refusedByPolicy.FindStringSubmatch(message); found != nil && !c.mentions(found[1]) {
		return fmt.Sprintf("a policy of another client refused the request: %s", found[1])
	}
	if found := refusedByWebhook.FindStringSubmatch(message); found != nil && !c.mentions(found[1]) {
		return fmt.Sprintf("a webhook of another client refused the request: %s", found[1])
	}
	return ""
}

// mentions reports whether a policy or webhook can be one of the scenario: its name has the
// ID of the scenario, or is in its manifests or expectations.
func (c *Case) mentions(name string) bool {
	if runid.Has(name, c.ID) {
		return true
	}
	text, err := json.Marshal([]any{c.Given, c.Scenario.Spec})
	return err != nil || strings.Contains(string(text), name)
}
