package execution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/report"
)

// cause says what is wrong in words that the failures of other scenarios have too, or "".
func (f *Failure) cause(found *report.Evidence) string {
	if f.onlyWords() {
		return "only the words of a message or warning differ"
	}
	for _, m := range f.mismatches {
		for _, d := range found.Decisions {
			if cause := f.causeOf(m, d); cause != "" {
				return cause
			}
		}
		if m.Path == "warnings" && strings.HasPrefix(m.Actual, "0 items") {
			return "warnings are missing"
		}
	}
	return ""
}

// onlyWords reports whether the response has the code that the step names, and only its texts differ.
func (f *Failure) onlyWords() bool {
	return len(f.mismatches) > 0 && !slices.ContainsFunc(f.mismatches, func(m expect.Mismatch) bool {
		return !strings.HasPrefix(m.Path, "warnings[") && (m.Path != "message" || !f.codeExpected())
	})
}

// causeOf is cause for one mismatch, with what one webhook or policy does for the request.
func (f *Failure) causeOf(m expect.Mismatch, d report.Decision) string {
	expected, ofCall := strings.CutPrefix(m.Expected, "a call of ")
	if m.Call != nil {
		called := f.result.Trace[*m.Call].Webhook
		unexpected := ofCall && expected != called || m.Expected == "no such call" || m.Path == "calls.exclude"
		if unexpected && reach.Effect(d.Effect) == reach.EffectNone && isWebhook(d, called) {
			return "a webhook is called although " + whyNot(reach.Reason(d.Reason))
		}
		return ""
	}
	if !f.result.Allowed() {
		return "" // the refusal can be why
	}
	switch reach.Effect(d.Effect) {
	case reach.EffectCalled:
		if ofCall && isWebhook(d, expected) {
			return "a webhook is not called although its rules, selectors and match conditions match"
		}
	case reach.EffectInvalid:
		if slices.Contains([]string{"allowed", "code", "refusedBy"}, m.Path) && strings.Contains(d.Text, "(validationActions Deny") {
			return "a request is allowed although a validation is false and the action is Deny"
		}
	default:
	}
	return ""
}

// isWebhook reports whether a decision is about a webhook.
func isWebhook(d report.Decision, name string) bool {
	return strings.HasSuffix(d.Subject, fmt.Sprintf(", webhook %q", name))
}

// whyNot says why a webhook is not to be called.
func whyNot(reason reach.Reason) string {
	switch reason {
	case reach.ReasonExempt:
		return "webhooks are never called for the resource"
	case reach.ReasonMatchPolicy:
		return "its matchPolicy is Exact"
	case reach.ReasonNamespaceSelector:
		return "its namespaceSelector does not match"
	case reach.ReasonObjectSelector:
		return "its objectSelector does not match"
	case reach.ReasonMatchCondition:
		return "a match condition is false"
	default:
		return "no rule matches"
	}
}
