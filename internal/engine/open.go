package engine

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// openUnsupported is the reason why an API server with other clients runs no scenario without
// isolation.
const openUnsupported = "isolation: none needs an API server that ends with the run: that of target envtest, or of a kind cluster that the run creates"

// open reports whether the scenario has no isolation.
func (c *scenarioCase) open() bool { return c.scenario.Spec.Isolation == scenario.IsolationNone }

// writtenByOpen returns the apiVersion and kind of what the steps of scenarios without isolation
// write. Unlike those that are narrowed, such objects affect the next scenario until the API
// server no longer acts on them.
func writtenByOpen(cases []*scenarioCase) []map[string]any {
	var all []map[string]any
	for _, c := range cases {
		if !c.open() {
			continue
		}
		_ = eachStep(c.scenario.Spec, func(_ string, step scenario.Step) error { // it returns no error
			for _, manifest := range append(slices.Clone(step.Install), step.Create, step.Update, step.Apply) {
				all = append(all, map[string]any{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]})
			}
			return nil
		})
	}
	return all
}
