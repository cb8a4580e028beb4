package harness

import (
	"k8s.io/apiserver/pkg/admission"
)

// Registered returns the names, sorted, that the register function of FromRegister
// registers. It is false for any other Source. A panic of the function is a
// *[PanicError].
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

// Other returns the Source of another plugin that the register function of FromRegister
// registers.
func (s Source) Other(name string) Source { return FromRegister(name, s.register) }

// Goroutines returns the goroutines that the plugin has begun, since it was built, and
// that still run: how many, where each began and where it is.
func (h *Harness) Goroutines() []string { return h.own.Running() }
