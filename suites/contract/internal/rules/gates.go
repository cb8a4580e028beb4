package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// gateProperties returns the properties of feature gates.
func gateRules() []check.Rule {
	return []check.Rule{
		{
			ID: "I5", Name: "uses-injected-feature-gates", Level: framework.Should,
			Title:     "A plugin goes by the feature gates that it was given, and not by the process's at the time of a request.",
			Why:       "A plugin that reads the global gates cannot be tested beside others, sees gates change while it runs, and disagrees with the API server that was given gates of its own.",
			Source:    []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission/initializer#WantsFeatures"},
			Check:     checkGlobalGates,
			Exclusive: true,
		},
		{
			ID: "I6", Name: "works-with-all-gate-combinations", Level: framework.May,
			Title:  "A plugin initializes, and does not panic, with every combination of the feature gates that it looks at.",
			Why:    "A combination that nobody tried leaves a lister nil that a request then uses.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission/initializer#WantsFeatures"},
			Check:  checkGateCombinations,
		},
	}
}

func checkGlobalGates(t *check.T) {
	h := t.Plugin()
	expected := t.SendAll(h)
	for _, group := range flippable(utilfeature.DefaultMutableFeatureGate.DeepCopy()) {
		restore, err := flip(utilfeature.DefaultMutableFeatureGate, group)
		if err != nil {
			t.Logf("the gates %s could not be changed: %v", gateNames(group), err)
			continue
		}
		unhurried := context.AfterFunc(t.Context(), restore) // should the plugin hang
		got := t.SendAll(h)
		unhurried()
		restore()
		when := "after gates of the process had been set (" + gateNames(group) + ")"
		if t.CompareResponses(when, expected, got, func() []check.Response { return t.SendAll(h) }) > 0 {
			t.Reached()
		}
	}
}

func gateNames(set map[string]bool) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		names = append(names, fmt.Sprintf("%s=%t", name, set[name]))
	}
	return strings.Join(names, ", ")
}

// flippable returns the gates that are not locked, with the opposite of their values,
// in as few groups as they can be set in: some depend on others. Gates is a copy.
func flippable(gates featuregate.MutableVersionedFeatureGate) []map[string]bool {
	opposite := map[string]bool{}
	for name, spec := range gates.GetAll() {
		if !spec.LockToDefault && name != "AllAlpha" && name != "AllBeta" {
			opposite[string(name)] = !gates.Enabled(name)
		}
	}
	return settable(gates, opposite)
}

// settable divides gates until each part can be set: what cannot alone, with the gates
// that it depends on or that depend on it. What cannot then is left out.
func settable(gates featuregate.MutableVersionedFeatureGate, wanted map[string]bool) []map[string]bool {
	if len(wanted) == 0 {
		return nil
	}
	if setGates(gates.DeepCopy(), wanted) == nil {
		return []map[string]bool{wanted}
	}
	names := slices.Sorted(maps.Keys(wanted))
	if len(names) == 1 {
		all := withRelated(gates, names[0], wanted[names[0]])
		if setGates(gates.DeepCopy(), all) == nil {
			return []map[string]bool{all}
		}
		return nil
	}
	var groups []map[string]bool
	for part := range slices.Chunk(names, (len(names)+1)/2) {
		half := map[string]bool{}
		for _, name := range part {
			half[name] = wanted[name]
		}
		groups = append(groups, settable(gates, half)...)
	}
	return groups
}

// dependent are gates that say which depend on which.
type dependent interface {
	Dependencies() map[featuregate.Feature][]featuregate.Feature
}

// withRelated returns a gate to be set and those that must be with it: what it depends
// on, for it to be on, and what depends on it, for it to be off.
func withRelated(gates featuregate.FeatureGate, name string, on bool) map[string]bool {
	all := map[string]bool{name: on}
	knows, ok := gates.(dependent)
	if !ok {
		return all
	}
	for grown := true; grown; {
		grown = false
		for gate, needs := range knows.Dependencies() {
			for _, needed := range needs {
				from, to := string(gate), string(needed)
				if !on {
					from, to = to, from
				}
				_, has := all[from]
				if _, had := all[to]; has && !had && gates.Enabled(featuregate.Feature(to)) != on {
					all[to], grown = on, true
				}
			}
		}
	}
	return all
}

// setGates sets gates without the log that says so.
func setGates(gates featuregate.MutableFeatureGate, wanted map[string]bool) error {
	if quiet, ok := gates.(interface {
		SetFromMapWithLogger(klog.Logger, map[string]bool) error
	}); ok {
		return quiet.SetFromMapWithLogger(klog.Logger{}, wanted)
	}
	return gates.SetFromMap(wanted)
}

// flip sets gates of the process until restore is called.
func flip(gates featuregate.MutableVersionedFeatureGate, wanted map[string]bool) (restore func(), err error) {
	before := map[string]bool{}
	var unset []featuregate.Feature
	for name := range wanted {
		before[name] = gates.Enabled(featuregate.Feature(name))
		if !gates.ExplicitlySet(featuregate.Feature(name)) {
			unset = append(unset, featuregate.Feature(name))
		}
	}
	restore = sync.OnceFunc(func() {
		_ = setGates(gates, before) // it held before
		for _, name := range unset {
			_ = gates.ResetFeatureValueToDefault(name)
		}
	})
	if err := setGates(gates, wanted); err != nil {
		restore()
		return nil, err
	}
	return restore, nil
}

// askedGates are gates that note which of them somebody looks at.
type askedGates struct {
	featuregate.FeatureGate
	told map[featuregate.Feature]bool

	mu    sync.Mutex
	asked map[featuregate.Feature]bool
}

func newAskedGates(told map[featuregate.Feature]bool) *askedGates {
	return &askedGates{FeatureGate: fakes.Gates(nil), told: told, asked: map[featuregate.Feature]bool{}}
}

// Enabled implements featuregate.FeatureGate.
func (g *askedGates) Enabled(name featuregate.Feature) bool {
	g.mu.Lock()
	g.asked[name] = true
	g.mu.Unlock()
	if on, ok := g.told[name]; ok {
		return on
	}
	return g.FeatureGate.Enabled(name)
}

func (g *askedGates) names() []featuregate.Feature {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.asked))
}

// possible is whether an API server would let gates be so: none is on that depends on one
// that is off.
func (g *askedGates) possible() bool {
	knows, ok := g.FeatureGate.(dependent)
	if !ok {
		return true
	}
	for name, on := range g.told {
		for _, needed := range knows.Dependencies()[name] {
			enabled, told := g.told[needed]
			if on && !enabled && (told || !g.FeatureGate.Enabled(needed)) {
				return false
			}
		}
	}
	return true
}

func checkGateCombinations(t *check.T) {
	if !slices.Contains(injected(t), "WantsFeatures") {
		t.Unsupported("the plugin does not ask for feature gates")
	}
	looked := newAskedGates(nil)
	w := t.World()
	h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectFeatureGates(looked)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	baseline := t.SendAll(h)
	if len(looked.names()) == 0 {
		t.Unsupported("the plugin asks for feature gates and looks at none")
	}
	for _, told := range combinations(looked.names()) {
		gates := newAskedGates(told)
		if !gates.possible() {
			continue
		}
		t.Reached()
		w := t.World()
		h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectFeatureGates(gates)))
		if err != nil {
			t.Errorf("with %s the plugin cannot be had: %v", toldText(told), err)
			continue
		}
		for i, request := range t.Requests() {
			if baseline[i].Err != nil {
				continue
			}
			if got := check.Send(t.Context(), h, request); got.Err != nil {
				t.Errorf("%s with %s: %s", request, toldText(told), got)
			}
		}
	}
}

func toldText(told map[featuregate.Feature]bool) string {
	names := map[string]bool{}
	for name, on := range told {
		names[string(name)] = on
	}
	return gateNames(names)
}

// combinations returns all of up to six gates; of more, each gate alone in either state.
func combinations(names []featuregate.Feature) []map[featuregate.Feature]bool {
	var all []map[featuregate.Feature]bool
	if n := len(names); n > 0 && n <= 6 {
		for bits := range 1 << n {
			one := map[featuregate.Feature]bool{}
			for i, name := range names {
				one[name] = bits&(1<<i) != 0
			}
			all = append(all, one)
		}
		return all
	}
	for _, state := range []bool{true, false} {
		every := map[featuregate.Feature]bool{}
		for _, name := range names {
			one := map[featuregate.Feature]bool{}
			for _, other := range names {
				one[other] = (other == name) == state
			}
			every[name] = state
			all = append(all, one)
		}
		if len(every) > 0 {
			all = append(all, every)
		}
	}
	return all
}
