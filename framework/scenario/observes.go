package scenario

import "slices"

// ObservesPlugins reports whether a step of the scenario expects calls of admission plugins.
func (s Scenario) ObservesPlugins() bool {
	if slices.ContainsFunc(s.Spec.When, Step.observesPlugins) {
		return true
	}
	for _, hook := range s.Spec.Hooks {
		if hook.observesPlugins() {
			return true
		}
	}
	return false
}

func (s Step) observesPlugins() bool {
	if s.Then != nil && s.Then.Plugins != nil || slices.ContainsFunc(s.Parallel, Step.observesPlugins) {
		return true
	}
	for _, hook := range s.Script {
		if hook.observesPlugins() {
			return true
		}
	}
	return false
}

func (h Hook) observesPlugins() bool {
	for _, reply := range append([]Reply{h.Reply}, h.Replies...) {
		if slices.ContainsFunc(reply.Meanwhile, Step.observesPlugins) {
			return true
		}
	}
	return false
}
