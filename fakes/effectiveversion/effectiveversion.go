// Package effectiveversion injects the effective version of an API server into plugins that want
// it. It is separate from package fakes because the Kubernetes package with this type depends on a
// command-line library, which the tests of other plugins do not need.
//
//	fakes.NewInitializer(world, effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.35")))
//
// The package is public for tests of plugins with the method InspectEffectiveVersion.
//
// # Promise
//
// New returns only pairs of versions with which an API server starts.
//
// # Not promised
//
// The effective version does not change the feature gates: set them with fakes.Gates.
package effectiveversion

import (
	"fmt"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/compatibility"
)

// behind is how many minors older than its own an API server can emulate.
const behind = 3

// New returns the effective version of an API server with this binary version that emulates the
// other version, such as "1.36" and "1.35". To emulate no other version, give the binary version
// twice. It ends the test if one of them is not a version, or if no API server starts with this
// pair.
func New(t framework.T, binary, emulation string) compatibility.EffectiveVersion {
	t.Helper()
	made, err := parse(binary, emulation)
	if err != nil {
		t.Fatalf("effective version: %v", err)
	}
	return made
}

// parse is New, but returns an error.
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

// wants is Kubernetes' WantsEffectiveVersion.
type wants interface {
	InspectEffectiveVersion(compatibility.EffectiveVersion)
	admission.InitializationValidator
}

// Inject returns the Injector for WantsEffectiveVersion, for fakes.NewInitializer or
// harness.WithInjectors. If version is nil, Err of the Initializer returns an error.
func Inject(version compatibility.EffectiveVersion) fakes.Injector {
	if version == nil {
		return fakes.Inject[wants]("WantsEffectiveVersion", nil)
	}
	return fakes.Inject("WantsEffectiveVersion", func(plugin wants) { plugin.InspectEffectiveVersion(version) })
}
