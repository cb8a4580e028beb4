package main

import (
	"slices"
	"strings"
)

// reason says why statements cannot run in a kube-apiserver, or cannot run on a single machine.
type reason struct {
	text string
	// applies reports whether the reason applies to a block that did not run.
	applies func(b block, f function, s source) bool
}

// reasons returns all reasons. The reasons of unrunnable.yaml come last. The reason of a block is
// the first one that applies.
func reasons(entries []entry) []reason {
	all := []reason{{
		"It is the type checking of policies, which runs in kube-controller-manager.",
		func(b block, _ function, _ source) bool {
			return b.File == plugins+"policy/validating/typechecking.go"
		},
	}, {
		"Only tests call the function.",
		func(_ block, f function, _ source) bool {
			return strings.HasSuffix(f.name, "ForTest") || strings.HasSuffix(f.name, "ForTests")
		},
	}, {
		"The plugin did not get what it needs. kube-apiserver always gives it.",
		func(_ block, f function, _ source) bool {
			return strings.HasSuffix(f.name, ".ValidateInitialization")
		},
	}, {
		"A value has another type than the one that its resource or source always has.",
		func(b block, _ function, s source) bool { return s.guarded(b.Start) == typeGuard },
	}, {
		"The caches of the plugin are still empty after ten seconds.",
		func(b block, _ function, s source) bool { return s.guarded(b.Start) == readyGuard },
	}}
	for _, one := range entries {
		all = append(all, reason{one.Reason, one.has})
	}
	return all
}

// reasonOf returns the index of the reason of a block, or -1.
func reasonOf(all []reason, b block, f function, s source) int {
	return slices.IndexFunc(all, func(r reason) bool { return r.applies(b, f, s) })
}
