package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
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
	mismatches []expect.Mismatch
	result     framework.Result
	// expect is what the mismatches are about, if there are any.
	expect *scenario.Expectation
	// request is the request of the step, if it sent one.
	request *framework.Request
	// control is true if the step is a control.
	control bool
	// nothing is why the mismatches say nothing about admission, so that the scenario is repeated. Unknown is why they do
	// not show whether the requirement holds, however often it is repeated.
	nothing, unknown string
}

// judged returns the failure of a step with mismatches, and finds out whether they say something about admission. The
// assumptions come first: another client may have changed or refused what was sent, the user may lack the right, a call or
// an audit event may have been lost, the infrastructure may have failed. Answers are the responses to all requests of the
// step. NotSaid is what the API server would have to say, and does not.
func (c *Case) judged(ctx context.Context, f Failure, answers []framework.Result, notSaid string) *Failure {
	if f.request != nil {
		f.Err = c.foreignChange(ctx, *f.request, f.result, f.mismatches)
		f.unknown = c.unauthorized(ctx, *f.request, f.result.Status)
	}
	if f.Err == nil && f.unknown == "" {
		f.nothing = cmp.Or(unobserved(f.expect, f.result), c.unreached(f.mismatches, answers), expect.InfrastructureOf(f.result.Status, f.codeExpected()))
		f.unknown = notSaid
	}
	return &f
}

// codeExpected reports whether the step names the code of the response.
func (f *Failure) codeExpected() bool {
	return f.expect != nil && slices.Contains(f.expect.Code, int(f.result.Status.Code))
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
	case errors.Is(f.Err, framework.ErrTimeout), errors.Is(f.Err, context.DeadlineExceeded), errors.As(f.Err, &foreign):
		verdict = framework.Inconclusive
	case f.Err != nil:
		verdict = framework.Errored
	case f.unknown != "", f.control:
		verdict = framework.Inconclusive
	}
	reason := fmt.Sprintf("step %d (line %d): %s", f.step, f.line, f)
	if f.Err == nil && f.unknown != "" {
		reason = fmt.Sprintf("step %d (line %d): %s: %s", f.step, f.line, f.action, f.unknown)
	}
	switch {
	case f.control && f.Err == nil:
		reason += " (this step is a control: without it, the other steps do not show whether the requirement holds)"
	case expect.IsMistake(f.Err):
		reason = f.Err.Error() // it begins with the position
	case foreign != nil:
		reason = foreign.Error() // the same for all scenarios
	}
	outcome := report.Outcome{
		Verdict:   verdict,
		Reason:    reason,
		NotServed: notServed(f.Err),
		Mistake:   expect.IsMistake(f.Err),
		Evidence:  c.evidence(f),
	}
	if verdict == framework.Fail {
		outcome.Cause = f.cause()
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
	found := expect.Of(expect.Step{
		Number: f.step, Line: f.line, Action: f.action, Request: f.request, Result: f.result, Mismatches: f.mismatches, Expect: f.expect,
	}, expect.Options{
		ID: c.ID, NotSeen: c.Unseen.Report(), Audit: c.target.Optional().Audit, Explain: c.explain,
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

// NothingAboutAdmission returns why a failure says nothing about what the scenario tests, or "": the API server was
// overloaded, could not reach its storage or did not respond, or something could not be observed. The scenario is
// repeated then.
func (f *Failure) NothingAboutAdmission() string {
	if f.Err != nil {
		return expect.InfrastructureError(f.Err)
	}
	return f.nothing
}

// cause says what is wrong in words that the failures of other scenarios have too, or "".
func (f *Failure) cause() string {
	if len(f.mismatches) > 0 && !slices.ContainsFunc(f.mismatches, func(m expect.Mismatch) bool {
		return !strings.HasPrefix(m.Path, "warnings[") && (m.Path != "message" || !f.codeExpected())
	}) {
		return "only the words of a message or warning differ"
	}
	if slices.ContainsFunc(f.mismatches, func(m expect.Mismatch) bool { return m.Path == "warnings" && strings.HasPrefix(m.Actual, "0 items") }) {
		return "warnings are missing"
	}
	return ""
}

// timedOut matches the message of an API server about a call of a webhook that took too long
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors.go, net/http).
var timedOut = regexp.MustCompile(`failed calling webhook "([^"]+)": .*(context deadline exceeded|Client\.Timeout|TLS handshake timeout|i/o timeout)`)

// defaultTimeout is that of a webhook without timeoutSeconds
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
const defaultTimeout = 10 * time.Second

// unreached returns why the responses to a step say nothing about admission, or "": the API server reports that a call
// timed out, or waited as long as the timeout of a webhook with failurePolicy Ignore in a time that no call explains. And
// the Hook did not receive a call that is expected, or it answers at once. On a busy machine, seconds can pass before a
// connection is open.
func (c *Case) unreached(mismatches []expect.Mismatch, all []framework.Result) string {
	missing := func(webhook string) bool {
		return slices.ContainsFunc(mismatches, func(m expect.Mismatch) bool {
			return strings.HasPrefix(m.Path, "calls") && strings.Contains(m.Expected, webhook)
		})
	}
	for _, result := range all {
		took, late := result.Finished.Sub(result.Started), ""
		if found := timedOut.FindStringSubmatch(result.Status.Message); found != nil {
			late = found[1]
		}
		if late != "" && missing(late) {
			return fmt.Sprintf("the API server reports that a call of webhook %s timed out, and the Hook did not receive the call", late)
		}
		for _, webhook := range c.webhooks() {
			ignored := webhook.ignored && unexplained(result) >= webhook.limit
			switch {
			case took < webhook.limit:
			case webhook.atOnce && (ignored && result.Allowed() || webhook.name == late):
				return fmt.Sprintf("a call of webhook %s took longer than its timeout of %s, although its Hook answers at once", webhook.name, webhook.limit)
			case ignored && missing(webhook.name):
				return fmt.Sprintf("the request took as long as the timeout of webhook %s, which has failurePolicy: Ignore, and the Hook did not receive a call", webhook.name)
			}
		}
	}
	return ""
}

// unexplained returns how long a request took besides the calls that the Hooks received.
func unexplained(result framework.Result) time.Duration {
	left := result.Finished.Sub(result.Started)
	for _, call := range result.Trace {
		if call.Plugin == nil && !call.Finished.IsZero() {
			left -= call.Finished.Sub(call.Started)
		}
	}
	return left
}

// webhook is a webhook that a scenario gives or installs.
type webhook struct {
	name    string
	ignored bool          // its failurePolicy is Ignore
	limit   time.Duration // the time for a call
	atOnce  bool          // a Hook serves it, and answers without a delay or a fault
}

// webhooks returns the webhooks of the scenario.
func (c *Case) webhooks() (all []webhook) {
	scripts := c.currentScripts()
	for _, m := range c.manifests() {
		for _, fields := range webhooksOf(m.object) {
			one := webhook{ignored: fields["failurePolicy"] == "Ignore", limit: defaultTimeout}
			one.name, _ = fields["name"].(string)
			if seconds, ok := fields["timeoutSeconds"].(int64); ok {
				one.limit = time.Duration(seconds) * time.Second
			}
			one.atOnce = fields["clientConfig"] == nil && !slices.ContainsFunc(scripts[one.name].Replies, func(r hook.Reply) bool {
				return r.Delay != 0 || r.Fault != "" || r.Meanwhile != nil
			})
			all = append(all, one)
		}
	}
	return all
}
