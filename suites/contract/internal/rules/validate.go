package rules

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

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
			Title:  "If the plugin admits a request, Validate accepts the object as Admit changed it.",
			Why:    "If the plugin refuses its own changes, users cannot correct their requests: they did not make these changes.",
			Fix:    "Let Validate accept each value that Admit sets.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/58196", "https://github.com/kubernetes/kubernetes/pull/58197"},
			Check:  checkValidateAcceptsAdmit,
		},
		{
			ID: "V3", Name: "validate-decides-about-the-final-object", Level: framework.Should,
			Title:  "Validate refuses each object that the plugin refuses, even if Admit was called with another object, which it admits.",
			Why:    "Webhooks, policies and other plugins can change the object after Admit. If only Admit checks it, an object that the plugin should refuse is stored.",
			Fix:    "Make each check in Validate, with the object that it gets. Checks in Admit are optional.",
			Source: []string{"https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#admission-control-phases", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#ValidationInterface"},
			Check:  checkFinalObject,
		},
	}
}

func checkFinalObject(t *check.T) {
	t.RequirePhase(framework.Mutating)
	t.RequirePhase(framework.Validating)
	eachRefusedObject(t, func(refused framework.Request, admitted runtime.Object) (found bool) {
		first := refused
		first.Object = named(check.Copy(admitted), refused.Object)
		h := t.Plugin()
		given, ok := t.AttributesFor(h, first, framework.Mutating)
		final, valid := t.AttributesFor(h, refused, framework.Validating)
		if !ok || !valid || !check.WouldCall(h.Plugin(), framework.Validating, final.Operation) {
			return false
		}
		if result, ok := t.Do(t.Plugin(), first); !ok || result.Err != nil {
			return false // the plugin refuses the request for another reason than the object
		}
		if result, ok := t.Do(t.Plugin(), refused); !ok || result.Err == nil {
			return false // requests-get-the-declared-answer (G1) reports it
		}
		before, after := check.Copy(given.Object), check.Copy(final.Object)
		if result, thrown := t.Call(h, given.Record(), framework.Mutating); thrown != nil || result.Err != nil {
			return false
		}
		result, thrown := t.Call(h, final.Record(), framework.Validating)
		if thrown != nil {
			return false
		}
		t.Reached()
		if result.Err == nil {
			t.Errorf("%s: the plugin refuses this request, but if Admit got another object, Validate admits the object. want: Validate refuses it (- the object of Admit, + the object of Validate):\n%s", refused, check.Diff(before, after))
		}
		return true
	})
}

// named gives an object the name and the namespace of another one, and returns it.
func named(object, as runtime.Object) runtime.Object {
	to, err := meta.Accessor(object)
	if err != nil {
		return object
	}
	if from, err := meta.Accessor(as); err == nil {
		to.SetName(from.GetName())
		to.SetGenerateName(from.GetGenerateName())
		to.SetNamespace(from.GetNamespace())
	}
	return object
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
