package engine

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/requests"
	"github.com/admissiontest/admissiontest/internal/object"
)

// wavesOf divides the scenarios of one server into waves. Exclusive scenarios come first:
// all in one wave if they install nothing that decides about requests, each other one in
// its own wave. Then as many scenarios at once as do not collide with their claims. Those
// without isolation come last, each in its own wave, if the target cannot start a server for
// each of them: they can change what others need.
func wavesOf(cases []*execution.Case) [][]*execution.Case {
	var passive []*execution.Case
	var exclusive, waves, open [][]*execution.Case
	var taken []claims
	waveOf := map[string]int{}
	for _, c := range cases {
		if c.Open() {
			at := slices.IndexFunc(open, func(wave []*execution.Case) bool { return wave[0].ID == c.ID })
			if at < 0 {
				at = len(open)
				open = append(open, nil)
			}
			open[at] = append(open[at], c)
			continue
		}
		if c.Scenario.Spec.Exclusive {
			if installsAdmission(c) {
				exclusive = append(exclusive, []*execution.Case{c})
			} else {
				passive = append(passive, c)
			}
			continue
		}
		if at, placed := waveOf[c.ID]; placed { // an installation is in one wave
			waves[at] = append(waves[at], c)
			continue
		}
		own := claimsOf(c.ID, cases)
		at := slices.IndexFunc(taken, func(others claims) bool { return others.allow(own) })
		if at < 0 {
			at = len(waves)
			waves, taken = append(waves, nil), append(taken, claims{})
		}
		waves[at], waveOf[c.ID] = append(waves[at], c), at
		taken[at].add(own)
	}
	if len(passive) > 0 {
		exclusive = append([][]*execution.Case{passive}, exclusive...)
	}
	return slices.Concat(exclusive, waves, open)
}

// installsAdmission reports whether the scenario installs webhook configurations or
// policies.
func installsAdmission(c *execution.Case) bool {
	all := slices.Clone(c.Given)
	for _, step := range c.Scenario.Spec.When {
		all = append(all, step.Install...)
	}
	return slices.ContainsFunc(all, object.IsAdmission)
}

// squadsOf divides a wave by how long its scenarios wait. The API server rereads policies once a
// second. Scenarios that install policies in their steps wait for that several times, scenarios with
// given policies wait once, and the others do not wait.
func squadsOf(wave []*execution.Case) [][]*execution.Case {
	var changing, policies, rest []*execution.Case
	for _, c := range wave {
		switch {
		case slices.ContainsFunc(c.Scenario.Spec.When, func(s scenario.Step) bool { return slices.ContainsFunc(s.Install, object.IsPolicy) }):
			changing = append(changing, c)
		case slices.ContainsFunc(c.Given, object.IsPolicy):
			policies = append(policies, c)
		default:
			rest = append(rest, c)
		}
	}
	return slices.DeleteFunc([][]*execution.Case{changing, policies, rest}, func(squad []*execution.Case) bool { return len(squad) == 0 })
}

// given returns the given objects of the cases that are installed.
func given(cases []*execution.Case) []map[string]any {
	var all []map[string]any
	for _, c := range cases {
		all = append(all, c.Installed()...)
	}
	return all
}

// byWait divides cases into those that mostly wait for a webhook that hangs, and the
// others. The former do not use the processor, so they get additional places.
func byWait(cases []*execution.Case) (waiting, busy []*execution.Case) {
	for _, c := range cases {
		if c.Waits() {
			waiting = append(waiting, c)
		} else {
			busy = append(busy, c)
		}
	}
	return waiting, busy
}

// crdsLast moves the cases with a given CustomResourceDefinition to the end:
// kube-apiserver delays each create of a custom resource for two seconds while its
// definition is younger than that
// (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go).
func crdsLast(cases []*execution.Case) []*execution.Case {
	var first, last []*execution.Case
	for _, c := range cases {
		if slices.ContainsFunc(c.Given, func(manifest map[string]any) bool { return manifest["kind"] == "CustomResourceDefinition" }) {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
	}
	return append(first, last...)
}

// written returns the apiVersion and kind of what the steps of scenarios write, and of what existed for
// them. A webhook configuration or policy affects the next scenario until the API server no longer acts on it.
func written(cases []*execution.Case) []map[string]any {
	var all []map[string]any
	kind := func(manifest map[string]any) map[string]any {
		return map[string]any{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
	}
	for _, c := range cases {
		for _, manifest := range c.Given {
			all = append(all, kind(manifest))
		}
		_ = requests.EachStep(c.Scenario.Spec, func(_ string, step scenario.Step) error { // it returns no error
			for _, manifest := range append(slices.Clone(step.Install), step.Create, step.Update, step.Apply) {
				all = append(all, kind(manifest))
			}
			return nil
		})
	}
	return all
}
