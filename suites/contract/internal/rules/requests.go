package rules

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// requestsRules returns the rules for the requests of the Subject itself.
func requestsRules() []check.Rule {
	return []check.Rule{
		{
			ID: "G1", Name: "requests-get-the-declared-answer", Level: framework.Must,
			Title:  "The plugin admits each request of Subject.Allow, and refuses each of Subject.Reject and Subject.RejectWith in the declared way.",
			Why:    "A plugin that admits everything breaks no other rule. And if a request gets another response than declared, it does not test the code that it should test.",
			Fix:    "Correct the plugin, or move the request to the list that matches its response.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#ValidationInterface"},
			Check:  checkDeclaredAnswers,
		},
		{
			ID: "G2", Name: "requests-cover-every-operation", Level: framework.Should,
			Title:  "The Subject has a request for each operation that the plugin handles.",
			Why:    "Without a request for an operation, no rule can check that operation. A plugin that handles an operation by mistake gets objects that it does not expect.",
			Fix:    "Add a request with this operation to Subject.Allow or Subject.Reject, or pass admission.NewHandler only the operations that the plugin supports.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Interface"},
			Check:  checkOperationsCovered,
		},
		{
			ID: "G3", Name: "requests-cover-every-resource", Level: framework.Should,
			Title:  "The Subject has a request for each resource on which the plugin acts.",
			Why:    "Without a request for a resource, no rule can check that resource. This rule tries an empty and a random object of each type in the Subject's schemes.",
			Fix:    "Add a request for the resource to Subject.Allow or Subject.Reject, or let the plugin ignore it.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkResourcesCovered,
		},
	}
}

func checkDeclaredAnswers(t *check.T) {
	answered := func(request framework.Request, judge func(harness.Result) string) {
		h := t.Plugin()
		given, ok := t.AttributesFor(h, request, framework.Mutating)
		if !ok {
			return
		}
		result, ok := t.Do(h, request)
		if !ok {
			return
		}
		t.Reached()
		wrong := judge(result)
		if wrong != "" && !h.Plugin().Handles(given.Operation) {
			wrong += fmt.Sprintf(" (the plugin does not handle %s)", given.Operation)
		}
		if wrong != "" {
			t.Errorf("%s: %s", request, wrong)
		}
	}
	for _, request := range t.Subject.Allow {
		answered(request, func(result harness.Result) string {
			if result.Err == nil || refusesItsOwnChange(t, request) {
				return ""
			}
			return "got " + refusalText(result.Status) + ", want admitted, because Subject.Allow has it"
		})
	}
	for _, request := range t.Subject.Reject {
		answered(request, func(result harness.Result) string {
			if result.Err != nil {
				return ""
			}
			return "got admitted, want a refusal, because Subject.Reject has it"
		})
	}
	for _, refusal := range t.Subject.RejectWith {
		answered(refusal.Request, func(result harness.Result) string { return otherThanDeclared(refusal, result) })
	}
}

// refusesItsOwnChange reports whether Validate refuses what Admit has changed, which
// validate-accepts-what-admit-made (V2) reports.
func refusesItsOwnChange(t *check.T, request framework.Request) bool {
	_, mutation, ok := t.ForValidation(t.Plugin(), request)
	return ok && !check.Equal(mutation.Before, mutation.Object)
}

func refusalText(status metav1.Status) string {
	return fmt.Sprintf("refused with %d %s (%s)", status.Code, status.Reason, status.Message)
}

// otherThanDeclared returns how the answer to a request differs from the declared refusal.
// Empty means not at all.
func otherThanDeclared(want check.Refusal, got harness.Result) string {
	if got.Err == nil {
		return "got admitted, want a refusal, because Subject.RejectWith has it"
	}
	var fields []string
	if got.Status.Details != nil {
		for _, cause := range got.Status.Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	switch {
	case want.Reason != "" && got.Status.Reason != want.Reason:
		return fmt.Sprintf("got %s, want reason %s", refusalText(got.Status), want.Reason)
	case want.Field != "" && !slices.Contains(fields, want.Field):
		return fmt.Sprintf("got %s with causes for the fields %q, want one for %q", refusalText(got.Status), fields, want.Field)
	case want.Text != "" && !strings.Contains(got.Status.Message, want.Text):
		return fmt.Sprintf("got %s, want %q in the message", refusalText(got.Status), want.Text)
	default:
		return ""
	}
}

func checkOperationsCovered(t *check.T) {
	h := t.Plugin()
	var has []admission.Operation
	for _, request := range t.Requests() {
		if given, ok := t.AttributesFor(h, request, framework.Mutating); ok {
			has = append(has, given.Operation)
		}
	}
	for _, operation := range operations() {
		switch {
		case !h.Plugin().Handles(operation):
		case slices.Contains(has, operation):
			t.Reached()
		default:
			t.Incomplete("the plugin handles %s, but the Subject has no request with this operation: add one to Subject.Allow or Subject.Reject", operation)
		}
	}
}
