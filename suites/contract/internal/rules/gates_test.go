package rules

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
)

// TestDependentGatesAreFlipped: Outer cannot be changed alone, because Inner depends on it and
// both are on, nor together with Added, which is off and needs it. Third cannot either, because it depends on Fourth and both are off.
func TestDependentGatesAreFlipped(t *testing.T) {
	gates := featuregate.NewFeatureGate()
	spec := func(on bool) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Default: on, PreRelease: featuregate.Beta}
	}
	known := map[featuregate.Feature]featuregate.FeatureSpec{
		"Outer": spec(true), "Inner": spec(true), "Locked": {Default: true, LockToDefault: true, PreRelease: featuregate.GA},
		"Third": spec(false), "Fourth": spec(false), "Alone": spec(false),
		"Added": spec(false),
	}
	if err := gates.Add(known); err != nil {
		t.Fatal(err)
	}
	related, ok := any(gates).(interface {
		AddDependencies(map[featuregate.Feature][]featuregate.Feature) error
	})
	if !ok {
		t.Skip("k8s.io/component-base has no dependencies of feature gates before 0.35")
	}
	if err := related.AddDependencies(map[featuregate.Feature][]featuregate.Feature{
		"Outer": {}, "Inner": {"Outer"}, "Third": {"Fourth"}, "Fourth": {}, "Alone": {}, "Added": {"Outer"}, "Locked": {},
	}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, group := range flippable(gates) {
		all = append(all, gateNames(group))
	}
	text := strings.Join(slices.Compact(all), "; ")
	for _, wanted := range []string{"Outer=false", "Inner=false", "Third=true", "Fourth=true", "Alone=true", "Added=true"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("groups are %q, want %s in one of them", text, wanted)
		}
	}
}
