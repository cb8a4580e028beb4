package expect

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
	if expect == nil {
		expect = &scenario.Expectation{}
	}
	c := compare()
	plugins := c.judgePlugins(expect.Plugins, got.Trace)
	var at []int // the indices of the webhook calls in the Trace
	webhooks := framework.Trace{}
	for index, call := range got.Trace {
		if call.Plugin == nil {
			at, webhooks = append(at, index), append(webhooks, call)
			if expect.Calls != nil || expect.Distinct != nil {
				c.seen = append(c.seen, viewOf(call))
			}
		}
	}
	got.Trace = webhooks
	found := slices.Concat(
		c.judgeStatus(expect, got),
		c.judgeObject(expect.Object, got.Fields()),
		c.judgeWarnings(expect, got.Warnings),
		c.judgeAudit(expect, got.Audit),
		c.judgeCalls(expect.Calls, got.Trace),
		c.judgeDistinct(expect.Distinct, got.Trace),
		c.judgeTimes(expect, got),
	)
	for i := range found {
		if found[i].Call != nil {
			found[i].Call = &at[*found[i].Call]
		}
	}
	return slices.Concat(found, plugins)
}

// comparison compares values. Its texts do not show what package redact hides.
type comparison struct {
	match.Matcher

	// seen are the calls of webhooks: see viewOf.
	seen []map[string]any
}

func compare() comparison {
	return comparison{Matcher: redact.Matcher()}
}

func (c comparison) judgeStatus(expect *scenario.Expectation, got framework.Result) []Mismatch {
	var found []Mismatch
	if allowed, checked := expectsAllowed(expect); checked && (allowed != got.Allowed() || got.Status.Code == 0) {
		expected := "the request to succeed"
		if !allowed {
			expected = "the request to be refused"
		}
		found = append(found, one("allowed", expected, c.summary(got.Status))...)
	}
	if len(expect.Code) > 0 && !slices.Contains(expect.Code, int(got.Status.Code)) {
		found = append(found, one("code", c.OneOf(expect.Code), c.Show(got.Status.Code))...)
	}
	if len(expect.Reason) > 0 && !slices.Contains(expect.Reason, string(got.Status.Reason)) {
		found = append(found, one("reason", c.OneOf(expect.Reason), c.Show(got.Status.Reason))...)
	}
	for _, part := range expect.Message {
		if !strings.Contains(got.Status.Message, part) {
			found = append(found, one("message", "a string that contains "+c.Show(part), c.Show(got.Status.Message))...)
		}
	}
	if expect.Details != nil {
		var details any = match.Absent{}
		if got.Status.Details != nil {
			details = got.Status.Details
		}
		found = append(found, c.Match(expect.Details, details, "details")...)
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
func (c comparison) summary(status metav1.Status) string {
	if status.Code == 0 {
		return "no answer: there is no HTTP status code"
	}
	text := fmt.Sprintf("code %d", status.Code)
	if status.Reason != "" {
		text += fmt.Sprintf(", reason %s", status.Reason)
	}
	if status.Message != "" {
		text += ", message " + c.Show(status.Message)
	}
	return text
}

func (c comparison) judgeObject(expect, got map[string]any) []Mismatch {
	if expect == nil {
		return nil
	}
	if got != nil {
		return c.Match(expect, redact.Fields(got), "object")
	}
	if _, _, operator := match.Operator(expect); operator {
		return c.Match(expect, match.Absent{}, "object")
	}
	return one("object", c.Show(expect), "no object in the response")
}

func (c comparison) judgeWarnings(expect *scenario.Expectation, got []string) []Mismatch {
	operator, _, _ := match.Operator(expect.Warnings)
	switch {
	case expect.Warnings == nil:
		return nil
	case expect.PolicyErrors && operator != "$not": // no warning of a policy is also no error of one
		return c.Match(expect.Warnings, markWarnings(got), "warnings")
	default:
		return c.Match(expect.Warnings, list(got), "warnings")
	}
}

func (c comparison) judgeAudit(expect *scenario.Expectation, got *framework.Audit) []Mismatch {
	if expect.Audit == nil {
		return nil
	}
	if got == nil {
		return one("audit", c.Describe(expect.Audit), "no audit event")
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
	return c.Match(expect.Audit, redact.Fields(event), "audit")
}

// list returns texts as a JSON list. It is never nil: no warnings are an empty list, not null.
func list(texts []string) []any {
	items := make([]any, 0, len(texts))
	for _, text := range texts {
		items = append(items, text)
	}
	return items
}

// Mismatch is one difference between a Result and an Expectation. Its path is the place of the difference: "code",
// "warnings[0]", `calls[1].request.object.metadata.labels["example.com/x"]`. Call is the index of the call in Result.Trace,
// or nil if the mismatch is not about one call in the Trace.
type Mismatch = match.Difference

// ofCall returns mismatches about one call.
func ofCall(found []Mismatch, call int) []Mismatch {
	for i := range found {
		found[i].Call = &call
	}
	return found
}

// one returns a single Mismatch without a Call.
func one(path, expected, actual string) []Mismatch {
	return []Mismatch{{Path: path, Expected: expected, Actual: actual}}
}
