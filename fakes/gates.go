package fakes

import (
	"maps"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// Gates returns feature gates of their own, on and off as told, so that tests can
// run beside one another. A gate that is not named is as the API server has it by
// default if Kubernetes' libraries register it, and else off. "AllAlpha" and "AllBeta"
// mean what they mean to an API server.
//
// What is told holds also for gates that an API server would not let be set so, because
// Kubernetes has locked them or because they depend on others: an older version, which a
// plugin may have to serve too, would.
func Gates(on map[featuregate.Feature]bool) featuregate.FeatureGate {
	private := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	known := private.GetAll()
	unknown := map[featuregate.Feature]featuregate.FeatureSpec{}
	for name := range on {
		if _, ok := known[name]; !ok {
			unknown[name] = featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
		}
	}
	_ = private.Add(unknown) // what it refuses is told all the same, below
	names := slices.Sorted(maps.Keys(on))
	for _, name := range names {
		_ = private.SetFromMap(map[string]bool{string(name): on[name]}) // likewise
	}
	return gates{FeatureGate: private, told: maps.Clone(on), known: private.GetAll()}
}

// gates is a FeatureGate that has no unknown features, which Kubernetes' own panics at.
type gates struct {
	featuregate.FeatureGate
	told  map[featuregate.Feature]bool
	known map[featuregate.Feature]featuregate.FeatureSpec
}

// Enabled is whether the gate is on.
func (g gates) Enabled(name featuregate.Feature) bool {
	if on, ok := g.told[name]; ok {
		return on
	}
	if _, ok := g.known[name]; !ok {
		return false
	}
	return g.FeatureGate.Enabled(name)
}
