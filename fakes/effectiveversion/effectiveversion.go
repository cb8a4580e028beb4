// Package effectiveversion gives plugins the effective version of an API server, if they want
// it. It is a separate package because Kubernetes' package of that type depends on a
// command-line library, which the tests of other plugins do not need.
//
//	fakes.NewInitializer(world, effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.35")))
//
// The package is public for tests of plugins that want the effective version.
//
// # Promise
//
// An API server starts with each version that New returns.
//
// # Not promised
//
// Feature gates do not depend on the version: use fakes.Gates.
package effectiveversion

import (
	"fmt"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/compatibility"
)

// behind is the number of minors before its own that an API server can emulate.
const behind = 3

// New returns the effective version of an API server, for its binary version and the version
// that it emulates ("1.36", "1.35"). It ends the test if one is not a version, or if no API
// server starts with this pair.
func New(t framework.T, binary, emulation string) compatibility.EffectiveVersion {
	t.Helper()
	made, err := parse(binary, emulation)
	if err != nil {
		t.Fatalf("effective version: %v", err)
	}
	return made
}

// parse is New with an error instead of a test.
func parse(binary, emulation string) (compatibility.EffectiveVersion, error) {
	binaryVersion, err := version.ParseGeneric(binary)
	if err != nil {
		return nil, fmt.Errorf("read binary version: %w: give it as \"1.36\"", err)
	}
	emulationVersion, err := version.ParseGeneric(emulation)
	if err != nil {
		return nil, fmt.Errorf("read emulation version: %w: give it as \"1.36\", or the binary version to emulate none", err)
	}
	floor := version.MajorMinor(binaryVersion.Major(), binaryVersion.Minor()).SubtractMinor(behind)
	made := compatibility.NewEffectiveVersion(binaryVersion, false, floor, floor)
	made.SetEmulationVersion(emulationVersion)
	for _, err := range made.Validate() {
		return nil, fmt.Errorf("emulate %s by an API server of %s: %w", emulation, binary, err)
	}
	return made, nil
}

// wants is upstream's WantsEffectiveVersion.
type wants interface {
	InspectEffectiveVersion(compatibility.EffectiveVersion)
	admission.InitializationValidator
}

// Inject returns the Injector of WantsEffectiveVersion. For a nil version, Err of the
// Initializer reports an error.
func Inject(version compatibility.EffectiveVersion) fakes.Injector {
	if version == nil {
		return fakes.Inject[wants]("WantsEffectiveVersion", nil)
	}
	return fakes.Inject("WantsEffectiveVersion", func(plugin wants) { plugin.InspectEffectiveVersion(version) })
}
