package harness

import (
	"k8s.io/apiserver/pkg/admission"
)

// Registered returns the sorted names that the register function of FromRegister registers. For
// a Source of FromFactory, ok is false. If the function panics, the error is a *[PanicError].
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

// Other returns the Source of another plugin of the same register function. For a Source of
// FromFactory, building a plugin from it is an error.
func (s Source) Other(name string) Source { return FromRegister(name, s.register) }
