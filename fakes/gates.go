package fakes

import (
	"maps"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// Gates returns feature gates with these values. Each call returns new gates, so that tests
// can run at the same time. A gate that is not in the map has its default if Kubernetes'
// libraries register it, and else is off. "AllAlpha" and "AllBeta" have the same meaning as for
// an API server.
//
// Gates sets also a gate that an API server refuses to set, because it is locked or because it
// depends on another gate. An older version, with which the plugin may also have to work, does
// not refuse it.
func Gates(on map[featuregate.Feature]bool) featuregate.FeatureGate {
	private := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	known := private.GetAll()
	unknown := map[featuregate.Feature]featuregate.FeatureSpec{}
	for name := range on {
		if _, ok := known[name]; !ok {
			unknown[name] = featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
		}
	}
	_ = private.Add(unknown) // Enabled has the values that it refuses
	names := slices.Sorted(maps.Keys(on))
	for _, name := range names {
		_ = private.SetFromMap(map[string]bool{string(name): on[name]}) // likewise
	}
	return gates{FeatureGate: private, set: maps.Clone(on), known: private.GetAll()}
}

// gates is a FeatureGate that returns false for an unknown feature. Kubernetes' own panics.
type gates struct {
	featuregate.FeatureGate
	set   map[featuregate.Feature]bool
	known map[featuregate.Feature]featuregate.FeatureSpec
}

// Enabled implements featuregate.FeatureGate.
func (g gates) Enabled(name featuregate.Feature) bool {
	if on, ok := g.set[name]; ok {
		return on
	}
	if _, ok := g.known[name]; !ok {
		return false
	}
	return g.FeatureGate.Enabled(name)
}
