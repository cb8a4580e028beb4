package scenario

import (
	"encoding/json"
	"regexp"
	"slices"
)

// ObservesPlugins reports whether a step of the scenario expects calls of admission plugins.
func (s Scenario) ObservesPlugins() bool {
	return s.HasStep(func(step Step) bool { return step.Then != nil && step.Then.Plugins != nil })
}

// ExpectsCalls reports whether a step of the scenario expects, or uses, calls of webhooks.
func (s Scenario) ExpectsCalls() bool {
	return s.UsesCalls() || s.HasStep(func(step Step) bool {
		then := step.Then
		return then != nil && (then.Calls != nil || len(then.Distinct) > 0 || then.Serial || len(then.Overlapping) > 0 || then.AnsweredLast)
	})
}

// callsPlaceholder matches a placeholder for a call of an earlier step.
var callsPlaceholder = regexp.MustCompile(`\$\(steps\.[^.)]+\.calls\.`)

// UsesCalls reports whether a step of the scenario has a placeholder for a call of an earlier step.
func (s Scenario) UsesCalls() bool {
	text, err := json.Marshal(s.Spec.When)
	return err == nil && callsPlaceholder.Match(text)
}

// ChangesFiles reports whether a step of the scenario changes files of its API server, so that no other
// scenario can have the same server.
func (s Scenario) ChangesFiles() bool {
	return s.HasStep(func(step Step) bool { return step.Files != nil })
}

// HasStep reports whether something holds for a step. It also checks the steps inside other steps and
// the steps of webhooks.
func (s Scenario) HasStep(holds func(Step) bool) bool {
	return slices.ContainsFunc(s.Spec.When, withInner(holds)) || scriptsHave(s.Spec.Hooks, holds)
}

// withInner returns a function that reports whether something holds for a step or for one in it.
func withInner(holds func(Step) bool) func(Step) bool {
	return func(s Step) bool {
		return holds(s) || slices.ContainsFunc(s.Parallel, withInner(holds)) || scriptsHave(s.Script, holds)
	}
}

func scriptsHave(scripts map[string]Hook, holds func(Step) bool) bool {
	for _, hook := range scripts {
		for _, reply := range append([]Reply{hook.Reply}, hook.Replies...) {
			if slices.ContainsFunc(reply.Meanwhile, withInner(holds)) {
				return true
			}
		}
	}
	return false
}
