package rules

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// validateProperties returns the properties of this file.
func validateRules() []check.Rule {
	return []check.Rule{
		{
			ID: "V1", Name: "validate-changes-nothing", Level: framework.Must,
			Title:  "Validate changes neither object nor old object nor the operation's options.",
			Why:    "the API server hands Validate copies and throws them away, so that what is changed is lost; before it did, validation changed what was stored, behind the back of everybody who had validated already",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/76910", "https://github.com/kubernetes/kubernetes/pull/77008", "https://github.com/kubernetes/kubernetes/issues/103545"},
			Check:  checkValidateChangesNothing,
		},
		{
			ID: "V2", Name: "validate-accepts-what-admit-made", Level: framework.Must,
			Title:  "Validate accepts what Admit has made of a request that the plugin admits.",
			Why:    "a plugin that looks at its own work twice must come to one conclusion; else it refuses users for what it has done itself",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/58196", "https://github.com/kubernetes/kubernetes/pull/58197"},
			Check:  checkValidateAcceptsAdmit,
		},
	}
}

// The user, whom Validate must not change either, is property U2's.
func checkValidateChangesNothing(t *check.T) {
	t.RequirePhase(framework.Validating)
	for _, request := range t.Requests() {
		h := t.Plugin()
		given, _, ok := t.ForValidation(h, request)
		if !ok {
			continue
		}
		before := check.TakeSnapshot(given)
		if _, thrown := t.Call(h, given.Record(), framework.Validating); thrown != nil {
			continue
		}
		t.Reached()
		if text := before.Changes(); text != "" {
			t.Errorf("%s: in Validate, %s", request, text)
		}
	}
}

func checkValidateAcceptsAdmit(t *check.T) {
	t.RequirePhase(framework.Mutating)
	t.RequirePhase(framework.Validating)
	for _, request := range t.Subject.Allow {
		h := t.Plugin()
		given, mutation, ok := t.ForValidation(h, request)
		if !ok {
			continue
		}
		mutated := !check.Equal(mutation.Before, mutation.Object)
		result, thrown := t.Call(h, given.Record(), framework.Validating)
		switch {
		case thrown != nil:
		case result.Err == nil && mutated:
			t.Reached()
		case result.Err != nil && mutated:
			t.Errorf("%s: Admit changed the object, and Validate then refused it: %s\nexpected a request of Subject.Allow to be admitted by both; Admit made (- was, + is):\n%s",
				request, result.Status.Message, check.Diff(mutation.Before, mutation.Object))
		case result.Err != nil:
			t.Errorf("%s: Admit admitted it as it is, and Validate refused it: %s\nexpected a request of Subject.Allow to be admitted by both: does it belong to Subject.Reject?", request, result.Status.Message)
		}
	}
}
