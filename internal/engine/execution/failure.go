package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Failure is why a step failed. For an error of Arrange, it has only Err.
type Failure struct {
	expect.Step
	// Err is set if the step could not be carried out.
	Err error

	// evidence is what was observed, if that is known already.
	evidence *report.Evidence
	// control is true if the step is a control.
	control bool
	// nothing is why the mismatches say nothing about admission, so that the scenario is repeated. Unknown is why they do
	// not show whether the requirement holds, however often it is repeated.
	nothing, unknown string
}

// judged returns the failure of a step with mismatches, and finds out whether they say something about admission. The
// assumptions come first: another client may have changed or refused what was sent, a call or an audit event may have been
// lost, the infrastructure may have failed, the user may lack the right. Answers are the responses to all requests of the
// step. NotSaid is what the API server would have to say, and does not.
func (c *Case) judged(ctx context.Context, f Failure, answers []framework.Result, notSaid string) *Failure {
	if f.Request != nil {
		f.Err = c.foreignChange(ctx, *f.Request, f.Result, f.Mismatches)
	}
	if f.Err == nil {
		f.nothing = cmp.Or(unobserved(f.Expect, f.Result), c.unreached(f.Mismatches, answers), expect.InfrastructureOf(f.Result.Status, f.codeExpected()))
		f.unknown = notSaid
	}
	return &f
}

// codeExpected reports whether the step names the code of the response.
func (f *Failure) codeExpected() bool {
	return f.Expect != nil && slices.Contains(f.Expect.Code, int(f.Result.Status.Code))
}

// String describes the failure in one line.
func (f *Failure) String() string {
	if f.Err != nil {
		return fmt.Sprintf("%s: %v", f.Action, f.Err)
	}
	return fmt.Sprintf("%s: %s", f.Action, f.Mismatches[0])
}

// Outcome returns the outcome of the scenario after a failure of Act.
func (c *Case) Outcome(f *Failure) report.Outcome {
	verdict := framework.Fail
	var foreign *ForeignError
	switch {
	case errors.Is(f.Err, framework.ErrForeign), errors.Is(f.Err, framework.ErrNotServed):
		verdict = framework.Unsupported
	case errors.Is(f.Err, framework.ErrTimeout), errors.Is(f.Err, context.DeadlineExceeded), errors.As(f.Err, &foreign):
		verdict = framework.Inconclusive
	case f.Err != nil:
		verdict = framework.Errored
	case f.unknown != "", f.control:
		verdict = framework.Inconclusive
	}
	reason := fmt.Sprintf("step %d (line %d): %s", f.Number, f.Line, f)
	if f.Err == nil && f.unknown != "" {
		reason = fmt.Sprintf("step %d (line %d): %s: %s", f.Number, f.Line, f.Action, f.unknown)
	}
	switch {
	case f.control && f.Err == nil:
		reason += " (this step is a control: without it, the other steps do not show whether the requirement holds)"
	case expect.IsMistake(f.Err):
		reason = f.Err.Error() // it begins with the position
	case foreign != nil:
		reason = foreign.Error() // the same for all scenarios
	}
	return report.Outcome{
		Verdict:   verdict,
		Reason:    reason,
		NotServed: notServed(f.Err),
		Mistake:   expect.IsMistake(f.Err),
		Evidence:  c.evidence(f),
	}
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
	if expect.IsMistake(err) {
		outcome.Reason, outcome.Mistake = err.Error(), true
	}
	return outcome
}

// evidence returns what was observed.
func (c *Case) evidence(f *Failure) *report.Evidence {
	if f.evidence != nil {
		return f.evidence
	}
	found := expect.Of(f.Step, expect.Options{
		ID: c.ID, NotSeen: c.Unseen.Report(), Audit: c.target.Optional().Audit, Explain: c.explain,
	})
	if f.Request != nil {
		found.Warnings = c.typeWarnings(*f.Request, found.Decisions)
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

// NothingAboutAdmission returns why a failure says nothing about what the scenario tests, or "": the API server was
// overloaded, could not reach its storage or did not respond, or something could not be observed. The scenario is
// repeated then.
func (f *Failure) NothingAboutAdmission() string {
	if f.Err != nil {
		return expect.InfrastructureError(f.Err)
	}
	return f.nothing
}

// defaultTimeout is that of a webhook without timeoutSeconds
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
const defaultTimeout = 10 * time.Second

// unreached returns why the responses to a step say nothing about admission, or "": the API server waited as long as the
// timeout of a webhook, in a time that no call explains, and the Hook did not receive a call that is expected, or answers
// at once. On a busy machine, seconds can pass before a connection is open.
func (c *Case) unreached(mismatches []expect.Mismatch, all []framework.Result) string {
	scripts := c.currentScripts()
	for _, m := range c.manifests() {
		for _, webhook := range webhooksOf(m.object) {
			name, _ := webhook["name"].(string)
			limit := defaultTimeout
			if seconds, ok := webhook["timeoutSeconds"].(int64); ok {
				limit = time.Duration(seconds) * time.Second
			}
			missing := slices.ContainsFunc(mismatches, func(m expect.Mismatch) bool {
				return strings.HasPrefix(m.Path, "calls") && strings.Contains(m.Expected, name)
			})
			atOnce := webhook["clientConfig"] == nil && !slices.ContainsFunc(scripts[name].Replies, func(r hook.Reply) bool {
				return r.Delay != 0 || r.Fault != "" || r.Meanwhile != nil
			})
			late := func(result framework.Result) bool { return unexplained(result, name, atOnce) >= limit }
			if (missing || atOnce) && slices.ContainsFunc(all, late) {
				return fmt.Sprintf("a request took longer than the timeout of webhook %s, %s, and the calls that its Hook received do not explain that", name, limit)
			}
		}
	}
	return ""
}

// unexplained returns how long a request took besides the calls that the Hooks received. A call of a Hook that answers at
// once explains nothing.
func unexplained(result framework.Result, webhook string, atOnce bool) time.Duration {
	left := result.Finished.Sub(result.Started)
	for _, call := range result.Trace {
		if call.Plugin == nil && !call.Finished.IsZero() && (!atOnce || call.Webhook != webhook) {
			left -= call.Finished.Sub(call.Started)
		}
	}
	return left
}
