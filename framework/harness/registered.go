package harness

import (
	"k8s.io/apiserver/pkg/admission"
)

// Registered returns the names of the plugins that the function of FromRegister registers, sorted.
// For a Source of FromFactory, ok is false. If the function panics, the error is a *[PanicError].
func (s Source) Registered() (names []string, ok bool, err error) {
	if s.register == nil {
		return nil, false, nil
	}
	err = guard("the register function", func() error {
		plugins := admission.NewPlugins()
		s.register(plugins)
		names = plugins.Registered()
		return nil
	})
	return names, true, err
}

// Other returns the Source of another plugin that the same function registers. For a Source of
// FromFactory, the returned Source cannot build a plugin: that is an error.
func (s Source) Other(name string) Source { return FromRegister(name, s.register) }
