package fakes

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Gates returns feature gates with these values. Each call returns new gates, so that tests can run
// at the same time. A gate that is not in the map has its default value. "AllAlpha" and "AllBeta"
// have the same effect as for an API server.
//
// Each gate must be registered in utilfeature.DefaultMutableFeatureGate, as for an API server:
// Kubernetes' libraries register theirs when they are imported, and a plugin's project registers its
// own. If the map has another gate, the Initializer that injects the gates returns an error. If a
// plugin reads another gate, Enabled panics, as that of an API server does; a Harness and an
// Initializer report the panic. For gates that are registered elsewhere, inject the
// featuregate.FeatureGate that has them.
//
// Gates also sets a gate that an API server of this version refuses to set, because the gate is
// locked or depends on another gate. The plugin may also have to work with an older version, which
// does not refuse it.
func Gates(on map[featuregate.Feature]bool) featuregate.FeatureGate {
	private := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	made := gates{FeatureGate: private, set: maps.Clone(on), known: private.GetAll()}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if _, ok := made.known[name]; !ok {
			wrong = append(wrong, made.unknown("the test sets", name, ""))
			continue
		}
		_ = private.SetFromMap(map[string]bool{string(name): on[name]}) // Enabled returns the given values even if this fails
	}
	made.wrong = errors.Join(wrong...)
	return made
}

// gates are the gates of Gates.
type gates struct {
	featuregate.FeatureGate
	set   map[featuregate.Feature]bool
	known map[featuregate.Feature]featuregate.FeatureSpec
	// wrong is why the gates cannot be used. Nil if they can.
	wrong error
}

// Enabled implements featuregate.FeatureGate.
func (g gates) Enabled(name featuregate.Feature) bool {
	if g.wrong != nil {
		panic(g.wrong) //nolint:forbidigo // the method has no error, and Kubernetes' own panics too
	}
	if on, ok := g.set[name]; ok {
		return on
	}
	if _, ok := g.known[name]; !ok {
		pc, file, line, _ := runtime.Caller(1)
		panic(g.unknown("the plugin reads", name, fmt.Sprintf(" in %s (%s:%d)", path.Base(runtime.FuncForPC(pc).Name()), path.Base(file), line))) //nolint:forbidigo // see above
	}
	return g.FeatureGate.Enabled(name)
}

// unknown returns the error for a gate that is not registered: what was done with it, and where.
func (g gates) unknown(what string, name featuregate.Feature, where string) error {
	known := make([]string, 0, len(g.known))
	for each := range g.known {
		known = append(known, string(each))
	}
	slices.Sort(known)
	return fmt.Errorf("%s feature gate %q%s, which is not registered%s; register a gate of your own as your API server does, and one of Kubernetes itself in a _test.go file, with utilfeature.DefaultMutableFeatureGate.Add, or inject gates that have it with fakes.InjectFeatureGates",
		what, name, where, suggest.DidYouMean(string(name), known))
}
