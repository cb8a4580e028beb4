// Package effectiveversion gives plugins that want it the effective version of their
// API server. It is a package of its own because Kubernetes' package of that type
// brings a command-line library along, which other plugins need not inherit.
package effectiveversion

import (
	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/component-base/compatibility"
)

// New returns the effective version of an API server of a binary version that
// emulates another ("1.36", "1.35"). Bad versions end the test.
func New(t framework.T, binary, emulation string) compatibility.EffectiveVersion { return nil }

// Inject is the Injector of WantsEffectiveVersion.
func Inject(version compatibility.EffectiveVersion) fakes.Injector { return fakes.Injector{} }
