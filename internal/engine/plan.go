package engine

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/object"
)

// wavesOf divides the scenarios of one server into waves: all that are narrowed to their namespaces at once, and then
// each other one alone. Isolate makes a wave for each scenario.
func wavesOf(setups []*execution.Setup, isolate bool) [][]*execution.Setup {
	var together []*execution.Setup
	var waves [][]*execution.Setup
	for _, s := range setups {
		if s.Open() || isolate {
			waves = append(waves, []*execution.Setup{s})
		} else {
			together = append(together, s)
		}
	}
	if len(together) > 0 {
		waves = append([][]*execution.Setup{together}, waves...)
	}
	return waves
}

// squadsOf divides a wave by how long its scenarios wait. The API server rereads policies once a
// second. Scenarios that install policies in their steps wait for that several times, scenarios with
// given policies wait once, and the others do not wait.
func squadsOf(wave []*execution.Setup) [][]*execution.Setup {
	var changing, policies, rest []*execution.Setup
	for _, s := range wave {
		switch {
		case slices.ContainsFunc(s.Scenario.Spec.When, func(s scenario.Step) bool { return slices.ContainsFunc(s.Install, object.IsPolicy) }):
			changing = append(changing, s)
		case slices.ContainsFunc(s.Given, object.IsPolicy):
			policies = append(policies, s)
		default:
			rest = append(rest, s)
		}
	}
	return slices.DeleteFunc([][]*execution.Setup{changing, policies, rest}, func(squad []*execution.Setup) bool { return len(squad) == 0 })
}

// casesOf returns the cases of scenarios.
func casesOf(setups []*execution.Setup) []*execution.Case {
	var all []*execution.Case
	for _, s := range setups {
		all = append(all, s.Cases...)
	}
	return all
}

// given returns the given objects of the scenarios that are installed.
func given(setups []*execution.Setup) []map[string]any {
	var all []map[string]any
	for _, s := range setups {
		all = append(all, s.Installed()...)
	}
	return all
}

// byWait divides scenarios into those that mostly wait for a webhook that hangs, and the
// others. The former do not use the processor, so they get additional places.
func byWait(setups []*execution.Setup) (waiting, busy []*execution.Setup) {
	for _, s := range setups {
		if s.Waits() {
			waiting = append(waiting, s)
		} else {
			busy = append(busy, s)
		}
	}
	return waiting, busy
}

// crdsLast moves the scenarios with a given CustomResourceDefinition to the end:
// kube-apiserver delays each create of a custom resource for two seconds while its
// definition is younger than that
// (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go).
func crdsLast(setups []*execution.Setup) []*execution.Setup {
	var first, last []*execution.Setup
	for _, s := range setups {
		if slices.ContainsFunc(s.Given, func(manifest map[string]any) bool { return manifest["kind"] == "CustomResourceDefinition" }) {
			last = append(last, s)
		} else {
			first = append(first, s)
		}
	}
	return append(first, last...)
}

// written returns the apiVersion and kind of what the steps of scenarios write, and of what existed for
// them. A webhook configuration or policy affects the next scenario until the API server no longer acts on it.
func written(setups []*execution.Setup) []map[string]any {
	var all []map[string]any
	kind := func(manifest map[string]any) map[string]any {
		return map[string]any{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
	}
	for _, s := range setups {
		for _, manifest := range s.Given {
			all = append(all, kind(manifest))
		}
		_ = execution.EachStep(s.Scenario.Spec, func(_ string, step scenario.Step) error { // it returns no error
			for _, manifest := range append(slices.Clone(step.Install), step.Create, step.Update, step.Apply) {
				all = append(all, kind(manifest))
			}
			return nil
		})
	}
	return all
}
