package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// gateRules returns the rules for feature gates.
func gateRules() []check.Rule {
	return []check.Rule{
		{
			ID: "I5", Name: "uses-injected-feature-gates", Level: framework.Should,
			Title:     "The plugin uses the feature gates that were injected, and does not read the global gates while it handles a request.",
			Why:       "A plugin that reads the global gates cannot be tested in parallel with other tests, sees gates change while it runs, and does not use the gates of an API server that has its own.",
			Fix:       "Read feature gates in InspectFeatureGates, and keep their values.",
			Source:    []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission/initializer#WantsFeatures"},
			Check:     checkGlobalGates,
			Exclusive: true,
		},
		{
			ID: "I6", Name: "works-with-all-gate-combinations", Level: framework.May,
			Title:  "The plugin initializes and does not panic with every combination of the feature gates that it reads.",
			Why:    "In a combination that was never tested, a lister can stay nil. The plugin then panics at the first request that uses it.",
			Fix:    "Require in ValidateInitialization only what the enabled gates need, and use nothing else.",
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
			t.Logf("change gates %s: %v", gateNames(group), err)
			continue
		}
		stop := context.AfterFunc(t.Context(), restore) // so that the gates are restored even if the plugin hangs
		got := t.SendAll(h)
		stop()
		restore()
		when := "after a change of the global gates (" + gateNames(group) + ")"
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

// flippable returns the gates that are not locked, with the opposite of their values, in a few
// groups: gates that depend on each other cannot always be set together. It does not change gates.
func flippable(gates featuregate.MutableVersionedFeatureGate) []map[string]bool {
	opposite := map[string]bool{}
	for name, spec := range gates.GetAll() {
		if !spec.LockToDefault && name != "AllAlpha" && name != "AllBeta" {
			opposite[string(name)] = !gates.Enabled(name)
		}
	}
	return settable(gates, opposite)
}

// settable divides gates into groups that can be set. In each group are as many as possible: a gate that depends on
// others can be set after them. Gates that can never be set are left out.
func settable(gates featuregate.MutableVersionedFeatureGate, wanted map[string]bool) (groups []map[string]bool) {
	left := slices.Sorted(maps.Keys(wanted))
	for {
		group := map[string]bool{}
		for before := -1; before < len(group); {
			before = len(group)
			left = slices.DeleteFunc(left, func(name string) bool {
				tried := maps.Clone(group)
				tried[name] = wanted[name]
				fits := setGates(gates.DeepCopy(), tried) == nil
				if fits {
					group = tried
				}
				return fits
			})
		}
		if len(group) == 0 {
			return groups
		}
		groups = append(groups, group)
	}
}

// dependent are gates that know the dependencies between them.
type dependent interface {
	Dependencies() map[featuregate.Feature][]featuregate.Feature
}

// setGates sets gates without logging.
func setGates(gates featuregate.MutableFeatureGate, wanted map[string]bool) error {
	if quiet, ok := gates.(interface {
		SetFromMapWithLogger(klog.Logger, map[string]bool) error
	}); ok {
		return quiet.SetFromMapWithLogger(klog.Logger{}, wanted)
	}
	return gates.SetFromMap(wanted)
}

// flip sets global gates until restore is called.
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
		_ = setGates(gates, before) // they were set before, so this cannot fail
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

// askedGates are gates that record which of them are read.
type askedGates struct {
	featuregate.FeatureGate
	set map[featuregate.Feature]bool

	mu    sync.Mutex
	asked map[featuregate.Feature]bool
}

// newAskedGates returns the gates of the Subject with other values.
func newAskedGates(t *check.T, set map[featuregate.Feature]bool) *askedGates {
	subject := &gateReader{}
	t.Initializer(t.World()).Initialize(subject)
	return &askedGates{FeatureGate: subject.FeatureGate, set: set, asked: map[featuregate.Feature]bool{}}
}

// gateReader is a plugin that keeps the feature gates that it gets.
type gateReader struct {
	admission.Handler
	featuregate.FeatureGate
}

// InspectFeatureGates implements initializer.WantsFeatures.
func (r *gateReader) InspectFeatureGates(gates featuregate.FeatureGate) { r.FeatureGate = gates }

// ValidateInitialization implements admission.InitializationValidator.
func (*gateReader) ValidateInitialization() error { return nil }

// Enabled implements featuregate.FeatureGate.
func (g *askedGates) Enabled(name featuregate.Feature) bool {
	g.mu.Lock()
	g.asked[name] = true
	g.mu.Unlock()
	if on, ok := g.set[name]; ok {
		return on
	}
	return g.FeatureGate.Enabled(name)
}

func (g *askedGates) names() []featuregate.Feature {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.asked))
}

// possible reports whether an API server accepts these gates: no gate is on that depends on
// one that is off.
func (g *askedGates) possible() bool {
	knows, ok := g.FeatureGate.(dependent)
	if !ok {
		return true
	}
	for name, on := range g.set {
		for _, needed := range knows.Dependencies()[name] {
			enabled, known := g.set[needed]
			if on && !enabled && (known || !g.FeatureGate.Enabled(needed)) {
				return false
			}
		}
	}
	return true
}

func checkGateCombinations(t *check.T) {
	if !slices.Contains(injected(t), "WantsFeatures") {
		t.Unsupported("no feature gates are injected into the plugin")
	}
	looked := newAskedGates(t, nil)
	w := t.World()
	h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectFeatureGates(looked)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	baseline := t.SendAll(h)
	if len(looked.names()) == 0 {
		t.Unsupported("the plugin reads no feature gate")
	}
	for _, set := range combinations(looked.names()) {
		gates := newAskedGates(t, set)
		if !gates.possible() {
			continue
		}
		t.Reached()
		w := t.World()
		h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectFeatureGates(gates)))
		if err != nil {
			t.Errorf("build the plugin with %s: %v", setText(set), err)
			continue
		}
		for i, request := range t.Requests() {
			if baseline[i].Err != nil {
				continue
			}
			if got := check.Send(t.Context(), h, request); got.Err != nil {
				t.Errorf("%s with %s: %s", request, setText(set), got)
			}
		}
	}
}

func setText(set map[featuregate.Feature]bool) string {
	names := map[string]bool{}
	for name, on := range set {
		names[string(name)] = on
	}
	return gateNames(names)
}

// combinations returns all combinations of up to six gates. For more gates it returns those
// in which one gate differs from all others, and those in which all are equal.
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
