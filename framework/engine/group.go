package engine

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/report"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// group is the scenarios of one server profile.
type group struct {
	profile   *scenario.Server
	key       string
	scenarios []scenario.Scenario
	skip      map[string]string
}

// what names the group in progress lines.
func (g group) what() string {
	if g.profile == nil {
		return ""
	}
	return " with a profile of its own for " + g.scenarios[0].Metadata.Name
}

// undecided returns a group without the scenarios that need no server to tell
// their outcome, and notes it: those that are skipped, and those that hold only
// since a later version. The default server is started for these too, since a
// report says what the target is.
func (r *run) undecided(ctx context.Context, g group) group {
	if g.profile == nil {
		return g
	}
	var info framework.TargetInfo
	if provider, ok := r.options.Provider.(Versioned); ok {
		if version, err := provider.Version(ctx); err == nil { // Start says what is wrong
			info.ServerVersion = version
		}
	}
	g.scenarios = slices.DeleteFunc(slices.Clone(g.scenarios), func(s scenario.Scenario) bool {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			r.finish(s, report.Outcome{Verdict: framework.Skipped, Reason: reason})
			return true
		}
		reason := tooOld(s, info)
		if reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
		}
		return reason != ""
	})
	return g
}

// groups sorts scenarios by the server they need: the default first.
func groups(scenarios []scenario.Scenario, skip map[string]string) []group {
	byKey := map[string]*group{}
	for _, s := range scenarios {
		key := ""
		if s.Spec.Server != nil {
			data, _ := json.Marshal(s.Spec.Server) // maps are marshalled in the order of their keys
			key = string(data)
		}
		if byKey[key] == nil {
			byKey[key] = &group{profile: s.Spec.Server, key: key, skip: skip}
		}
		byKey[key].scenarios = append(byKey[key].scenarios, s)
	}
	var out []group
	for _, g := range byKey {
		slices.SortFunc(g.scenarios, func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b group) int { return strings.Compare(a.key, b.key) })
	return out
}

// wavesOf divides what one server runs. Those who ask to be alone come first:
// together where none of them installs what decides about requests, or else one
// at a time. Then as many at once as give no different objects of one name.
func wavesOf(cases []*scenarioCase) [][]*scenarioCase {
	var quiet []*scenarioCase
	var alone, waves [][]*scenarioCase
	var names []map[string]map[string]any
	for _, c := range cases {
		if c.scenario.Spec.Alone {
			if c.decides() {
				alone = append(alone, []*scenarioCase{c})
			} else {
				quiet = append(quiet, c)
			}
			continue
		}
		given := sharedNames(c)
		at := slices.IndexFunc(names, func(taken map[string]map[string]any) bool { return compatible(taken, given) })
		if at < 0 {
			at = len(waves)
			waves, names = append(waves, nil), append(names, map[string]map[string]any{})
		}
		waves[at] = append(waves[at], c)
		for key, manifest := range given {
			names[at][key] = manifest
		}
	}
	if len(quiet) > 0 {
		alone = append([][]*scenarioCase{quiet}, alone...)
	}
	return append(alone, waves...)
}

// decides reports whether the scenario installs what decides about requests.
func (c *scenarioCase) decides() bool {
	installed := c.given
	for _, step := range c.scenario.Spec.When {
		installed = append(slices.Clone(installed), step.Install...)
	}
	return slices.ContainsFunc(installed, isAdmission)
}

// sharedNames returns the given objects whose name is not the scenario's alone.
func sharedNames(c *scenarioCase) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, manifest := range c.given {
		metadata, _ := manifest["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		namespace, _ := metadata["namespace"].(string)
		if strings.Contains(name, c.id) || strings.Contains(namespace, c.id) {
			continue
		}
		if apiVersion, _ := manifest["apiVersion"].(string); strings.HasPrefix(apiVersion, "admissionregistration.k8s.io/") {
			continue
		}
		kind, _ := manifest["kind"].(string)
		if namespace == "" && c.namespaced(manifest) {
			continue
		}
		out[kind+" "+namespace+"/"+name] = manifest
	}
	return out
}

func compatible(taken, given map[string]map[string]any) bool {
	for key, manifest := range given {
		if other, ok := taken[key]; ok && !reflect.DeepEqual(other, manifest) {
			return false
		}
	}
	return true
}
