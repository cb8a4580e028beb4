package execution

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The cause of a failure is said in words that other scenarios share, and only if it is known.
func TestCause(t *testing.T) {
	first, expect403 := 0, &scenario.Expectation{Code: scenario.OneOrMore[int]{403}}
	called := framework.Result{Status: response(201, "").Status, Trace: framework.Trace{{Webhook: "a"}}}
	refused := framework.Result{Status: response(403, "no").Status, Trace: called.Trace}
	extra := expect.Mismatch{Path: "calls[0]", Expected: "no such call", Call: &first}
	missing := expect.Mismatch{Path: "calls[1]", Expected: "a call of b"}
	because := func(effect, reason, text string) report.Decision {
		return report.Decision{Subject: `ValidatingWebhookConfiguration "w", webhook "a"`, Effect: effect, Reason: reason, Text: text}
	}
	ofB := report.Decision{Subject: `ValidatingWebhookConfiguration "w", webhook "b"`, Effect: "called"}
	noB := ofB
	noB.Effect, noB.Reason = "none", "ObjectSelector"
	policy := report.Decision{Subject: `ValidatingAdmissionPolicy "p", binding "b"`, Effect: "invalid", Text: "validations[0] is false: false (validationActions Deny, Audit)"}
	warns := policy
	warns.Text = "validations[0] is false: false (validationActions Warn)"
	const (
		words     = "only the words of a message or warning differ"
		notCalled = "a webhook is not called although its rules, selectors and match conditions match"
		allowed   = "a request is allowed although a validation is false and the action is Deny"
	)
	for name, test := range map[string]struct {
		failure   Failure
		decisions []report.Decision
		want      string
	}{
		"a message":                     {Failure{result: refused, expect: expect403, mismatches: []expect.Mismatch{{Path: "message"}}}, nil, words},
		"a message, any code":           {Failure{result: refused, mismatches: []expect.Mismatch{{Path: "message"}}}, nil, ""},
		"a message and the code":        {Failure{result: refused, expect: expect403, mismatches: []expect.Mismatch{{Path: "reason"}, {Path: "message"}}}, nil, ""},
		"a warning":                     {Failure{result: called, mismatches: []expect.Mismatch{{Path: "warnings[0]"}}}, nil, words},
		"no warnings":                   {Failure{result: called, mismatches: []expect.Mismatch{{Path: "warnings", Actual: "0 items: []"}}}, nil, "warnings are missing"},
		"another number of warnings":    {Failure{result: called, mismatches: []expect.Mismatch{{Path: "warnings", Actual: "2 items: []"}}}, nil, ""},
		"excluded by its selector":      {Failure{result: called, mismatches: []expect.Mismatch{{Path: "code"}, extra}}, []report.Decision{ofB, because("none", "ObjectSelector", "")}, "a webhook is called although its objectSelector does not match"},
		"excluded by its rules":         {Failure{result: called, mismatches: []expect.Mismatch{extra}}, []report.Decision{because("none", "Operation", "")}, "a webhook is called although no rule matches"},
		"another webhook is called":     {Failure{result: called, mismatches: []expect.Mismatch{{Path: "calls[0]", Expected: "a call of b", Call: &first}}}, []report.Decision{because("none", "Exempt", "")}, "a webhook is called although webhooks are never called for the resource"},
		"the right call, wrong request": {Failure{result: called, mismatches: []expect.Mismatch{{Path: "calls[0].request.name", Expected: "x", Call: &first}}}, []report.Decision{because("none", "Exempt", "")}, ""},
		"another webhook is excluded":   {Failure{result: called, mismatches: []expect.Mismatch{extra}}, []report.Decision{noB}, ""},
		"called, and that is right":     {Failure{result: called, mismatches: []expect.Mismatch{extra}}, []report.Decision{because("unknown", "", "")}, ""},
		"not called":                    {Failure{result: called, mismatches: []expect.Mismatch{missing}}, []report.Decision{ofB}, notCalled},
		"not called after a refusal":    {Failure{result: refused, mismatches: []expect.Mismatch{missing}}, []report.Decision{ofB}, ""},
		"not called, as is right":       {Failure{result: called, mismatches: []expect.Mismatch{missing}}, []report.Decision{because("called", "", "")}, ""},
		"allowed":                       {Failure{result: called, mismatches: []expect.Mismatch{{Path: "code"}}}, []report.Decision{policy}, allowed},
		"allowed with a warning":        {Failure{result: called, mismatches: []expect.Mismatch{{Path: "code"}}}, []report.Decision{warns}, ""},
		"another field":                 {Failure{result: called, mismatches: []expect.Mismatch{{Path: "object.data"}}}, []report.Decision{policy}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.failure.cause(&report.Evidence{Decisions: test.decisions}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
