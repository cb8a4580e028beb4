package rules

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// validateRules returns the rules for Validate.
func validateRules() []check.Rule {
	return []check.Rule{
		{
			ID: "V1", Name: "validate-changes-nothing", Level: framework.Must,
			Title:  "Validate does not change the object, the old object or the operation options.",
			Why:    "The API server gives Validate copies and discards them, so a change is lost. Before it did so, validation changed what was stored, after other plugins had already validated it.",
			Fix:    "Change objects in Admit only, and let Validate work on a DeepCopy.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/76910", "https://github.com/kubernetes/kubernetes/pull/77008", "https://github.com/kubernetes/kubernetes/issues/103545"},
			Check:  checkValidateChangesNothing,
		},
		{
			ID: "V2", Name: "validate-accepts-what-admit-made", Level: framework.Must,
			Title:  "Validate accepts what Admit has made of a request that the plugin admits.",
			Why:    "A plugin that refuses its own changes refuses users for something that they did not do.",
			Fix:    "Let Validate accept each value that Admit sets.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/58196", "https://github.com/kubernetes/kubernetes/pull/58197"},
			Check:  checkValidateAcceptsAdmit,
		},
	}
}

// checkValidateChangesNothing does not look at the user: user-is-unchanged (U2) does.
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
			t.Errorf("%s: called in Validate, %s", request, text)
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
			t.Errorf("%s: Admit changed the object, and Validate then refused it: %s\nwant: both admit a request of Subject.Allow. Admit changed (- was, + is):\n%s",
				request, result.Status.Message, check.Diff(mutation.Before, mutation.Object))
		} // requests-get-the-declared-answer (G1) reports other refusals
	}
}
