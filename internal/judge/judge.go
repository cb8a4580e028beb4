package judge

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// Judge returns all mismatches between got and the expectation, or nil if it holds. A nil
// expectation means that the request must be allowed. The mismatches do not show what package
// redact hides.
func Judge(expect *scenario.Expectation, got framework.Result) []Mismatch {
	if len(WithSecrets(expect, got)) == 0 {
		return nil
	}
	return view(redact.Fields).judge(expect, got)
}

// WithSecrets is Judge with mismatches that show all values.
func WithSecrets(expect *scenario.Expectation, got framework.Result) []Mismatch {
	return view(func(fields map[string]any) map[string]any { return fields }).judge(expect, got)
}

// view returns the fields of an object, a call or an audit event for a comparison. It can
// mark values as match.Hidden, which are compared like others.
type view func(map[string]any) map[string]any

func (v view) judge(expect *scenario.Expectation, got framework.Result) []Mismatch {
	if expect == nil {
		expect = &scenario.Expectation{}
	}
	plugins := judgePlugins(expect.Plugins, got.Trace)
	var at []int // the indices of the webhook calls in the Trace
	webhooks := framework.Trace{}
	for index, call := range got.Trace {
		if call.Plugin == nil {
			at, webhooks = append(at, index), append(webhooks, call)
		}
	}
	got.Trace = webhooks
	found := slices.Concat(
		judgeStatus(expect, got),
		v.judgeObject(expect.Object, got.Fields()),
		judgeWarnings(expect, got.Warnings),
		v.judgeAudit(expect, got.Audit),
		v.judgeCalls(expect.Calls, got.Trace),
		v.judgeDistinct(expect.Distinct, got.Trace),
		judgeTimes(expect, got),
	)
	for i := range found {
		if found[i].Call != nil {
			found[i].Call = &at[*found[i].Call]
		}
	}
	return slices.Concat(found, plugins)
}

func judgeStatus(expect *scenario.Expectation, got framework.Result) []Mismatch {
	var found []Mismatch
	if allowed, checked := expectsAllowed(expect); checked && (allowed != got.Allowed() || got.Status.Code == 0) {
		expected := "the request to succeed"
		if !allowed {
			expected = "the request to be refused"
		}
		found = append(found, one("allowed", expected, summary(got.Status))...)
	}
	if len(expect.Code) > 0 && !slices.Contains(expect.Code, int(got.Status.Code)) {
		found = append(found, one("code", match.OneOf(expect.Code), match.Show(got.Status.Code))...)
	}
	if len(expect.Reason) > 0 && !slices.Contains(expect.Reason, string(got.Status.Reason)) {
		found = append(found, one("reason", match.OneOf(expect.Reason), match.Show(got.Status.Reason))...)
	}
	for _, part := range expect.Message {
		if !strings.Contains(got.Status.Message, part) {
			found = append(found, one("message", "a text that contains "+match.Show(part), match.Show(got.Status.Message))...)
		}
	}
	if expect.Details != nil {
		var details any = match.Absent{}
		if got.Status.Details != nil {
			details = got.Status.Details
		}
		found = append(found, Match(expect.Details, details, "details")...)
	}
	return found
}

// expectsAllowed returns the expected value of allowed, and whether it is checked.
func expectsAllowed(expect *scenario.Expectation) (allowed, checked bool) {
	if expect.Allowed != nil {
		return *expect.Allowed, true
	}
	if expect.RefusedBy != nil {
		return false, true
	}
	return true, len(expect.Code) == 0 && len(expect.Reason) == 0
}

// summary returns the Status on one line.
func summary(status metav1.Status) string {
	if status.Code == 0 {
		return "no answer: there is no HTTP status code"
	}
	text := fmt.Sprintf("code %d", status.Code)
	if status.Reason != "" {
		text += fmt.Sprintf(", reason %s", status.Reason)
	}
	if status.Message != "" {
		text += ", message " + match.Show(status.Message)
	}
	return text
}

func (v view) judgeObject(expect, got map[string]any) []Mismatch {
	if expect == nil {
		return nil
	}
	if got != nil {
		return Match(expect, v(got), "object")
	}
	if _, _, operator := match.Operator(expect); operator {
		return Match(expect, match.Absent{}, "object")
	}
	return one("object", match.Show(expect), "no object in the response")
}

func judgeWarnings(expect *scenario.Expectation, got []string) []Mismatch {
	operator, _, _ := match.Operator(expect.Warnings)
	switch {
	case expect.Warnings == nil:
		return nil
	case expect.PolicyErrors && operator != "$not": // no warning of a policy is also no error of one
		return Match(expect.Warnings, markWarnings(got), "warnings")
	default:
		return Match(expect.Warnings, list(got), "warnings")
	}
}

func (v view) judgeAudit(expect *scenario.Expectation, got *framework.Audit) []Mismatch {
	if expect.Audit == nil {
		return nil
	}
	if got == nil {
		return one("audit", match.Describe(expect.Audit), "no audit event")
	}
	event := map[string]any{"level": got.Level}
	if got.Annotations != nil {
		event["annotations"] = got.Annotations
	}
	if expect.PolicyErrors {
		event["annotations"] = markFailures(got.Annotations)
	}
	if got.RequestObject != nil {
		event["requestObject"] = got.RequestObject
	}
	if got.ResponseObject != nil {
		event["responseObject"] = got.ResponseObject
	}
	return Match(expect.Audit, v(event), "audit")
}

// list returns texts as a JSON list. It is never nil: no warnings are an empty list, not null.
func list(texts []string) []any {
	items := make([]any, 0, len(texts))
	for _, text := range texts {
		items = append(items, text)
	}
	return items
}
