package harness

import (
	"k8s.io/apiserver/pkg/admission"
)

// Source is where plugins come from: each Harness builds one of its own.
type Source struct{}

// FromRegister takes the plugin that register registers under this name.
func FromRegister(name string, register func(*admission.Plugins)) Source { return Source{} }

// FromFactory takes what a factory returns.
func FromFactory(factory admission.Factory) Source { return Source{} }
