package check

import (
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
)

// Phases returns the phases in the order in which an API server calls a plugin.
func Phases() []framework.Phase {
	return []framework.Phase{framework.Mutating, framework.Validating}
}

// MethodOf returns the method that is called in a phase: "Admit" or "Validate".
func MethodOf(phase framework.Phase) string {
	if phase == framework.Mutating {
		return "Admit"
	}
	return "Validate"
}

// HasPhase reports whether a plugin has the method of a phase.
func HasPhase(plugin admission.Interface, phase framework.Phase) bool {
	ok := false
	switch phase {
	case framework.Mutating:
		_, ok = plugin.(admission.MutationInterface)
	case framework.Validating:
		_, ok = plugin.(admission.ValidationInterface)
	}
	return ok
}

// WouldCall reports whether an API server would call a plugin in a phase for an operation.
func WouldCall(plugin admission.Interface, phase framework.Phase, operation admission.Operation) bool {
	return HasPhase(plugin, phase) && plugin.Handles(operation)
}

// RequirePhase ends the check as unsupported if the plugin does not have a phase.
func (t *T) RequirePhase(phase framework.Phase) {
	if !HasPhase(t.NewPlugin(), phase) {
		t.Unsupported("the plugin has no %s", MethodOf(phase))
	}
}
