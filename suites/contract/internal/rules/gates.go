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

// flippable returns the gates that are not locked, with the opposite of their values, in two groups: those that are
// turned off, with all gates that depend on them, and those that are turned on, with all gates that they depend on.
// It does not change gates.
func flippable(gates featuregate.MutableVersionedFeatureGate) []map[string]bool {
	groups := map[bool]map[string]bool{false: {}, true: {}}
	for name, spec := range gates.GetAll() {
		if !spec.LockToDefault && name != "AllAlpha" && name != "AllBeta" {
			on := !gates.Enabled(name)
			groups[on][string(name)] = on
		}
	}
	return slices.DeleteFunc([]map[string]bool{settable(gates, groups[false]), settable(gates, groups[true])},
		func(group map[string]bool) bool { return len(group) == 0 })
}

// settable returns the gates that can be set together. A gate that depends on others can be set after them. One that
// depends on a locked gate may be left out.
func settable(gates featuregate.MutableVersionedFeatureGate, wanted map[string]bool) map[string]bool {
	if setGates(gates.DeepCopy(), wanted) == nil {
		return wanted
	}
	group, left := map[string]bool{}, slices.Sorted(maps.Keys(wanted))
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
	return group
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
