package fakes

import (
	"maps"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// Gates returns feature gates with these values. Each call returns new gates, so that tests can run
// at the same time. A gate that is not in the map has its default value if Kubernetes' libraries
// register it; otherwise it is off. "AllAlpha" and "AllBeta" have the same effect as for an API
// server.
//
// Gates also sets a gate that an API server of this version refuses to set, because the gate is
// locked or depends on another gate. The plugin may also have to work with an older version, which
// does not refuse it.
func Gates(on map[featuregate.Feature]bool) featuregate.FeatureGate {
	private := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	known := private.GetAll()
	unknown := map[featuregate.Feature]featuregate.FeatureSpec{}
	for name := range on {
		if _, ok := known[name]; !ok {
			unknown[name] = featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
		}
	}
	_ = private.Add(unknown) // gates.Enabled returns the given values even if this fails
	names := slices.Sorted(maps.Keys(on))
	for _, name := range names {
		_ = private.SetFromMap(map[string]bool{string(name): on[name]}) // see above
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
