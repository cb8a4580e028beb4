// Package effectiveversion gives plugins that want it the effective version of their
// API server. It is a package of its own because Kubernetes' package of that type
// brings a command-line library along, which other plugins need not inherit.
//
//	fakes.NewInitializer(world, effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.35")))
//
// # Promise
//
// A version that New returns is one that an API server starts with.
//
// # Not promised
//
// Feature gates do not follow the version: they are told by fakes.Gates.
package effectiveversion

import (
	"fmt"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/compatibility"
)

// behind is how many minors an API server can emulate.
const behind = 3

// New returns the effective version of an API server of a binary version that
// emulates another ("1.36", "1.35"). Bad versions, and a pair that no API server starts
// with, end the test.
func New(t framework.T, binary, emulation string) compatibility.EffectiveVersion {
	t.Helper()
	made, err := parse(binary, emulation)
	if err != nil {
		t.Fatalf("effective version: %v", err)
	}
	return made
}

// parse is New for those who have no test.
func parse(binary, emulation string) (compatibility.EffectiveVersion, error) {
	binaryVersion, err := version.ParseGeneric(binary)
	if err != nil {
		return nil, fmt.Errorf("read binary version: %w: give it as \"1.36\"", err)
	}
	emulationVersion, err := version.ParseGeneric(emulation)
	if err != nil {
		return nil, fmt.Errorf("read emulation version: %w: give it as \"1.36\", that of the binary if it emulates none", err)
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

// Inject is the Injector of WantsEffectiveVersion. A nil version is an error of the
// Initializer.
func Inject(version compatibility.EffectiveVersion) fakes.Injector {
	if version == nil {
		return fakes.Inject[wants]("WantsEffectiveVersion", nil)
	}
	return fakes.Inject("WantsEffectiveVersion", func(plugin wants) { plugin.InspectEffectiveVersion(version) })
}
