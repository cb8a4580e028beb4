package harness

import (
	"errors"
	"io"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

func TestRegistered(t *testing.T) {
	factory := func(io.Reader) (admission.Interface, error) { return nil, nil }
	names, ok, err := FromRegister("b", func(plugins *admission.Plugins) {
		plugins.Register("b", factory)
		plugins.Register("a", factory)
	}).Registered()
	if !slices.Equal(names, []string{"a", "b"}) || !ok || err != nil {
		t.Errorf("Registered() = %q, %t, %v, want [a b], true and no error", names, ok, err)
	}
	if _, err := FromRegister("a", func(plugins *admission.Plugins) { plugins.Register("a", factory) }).Other("b").Plugin(nil); err == nil {
		t.Error("a plugin that is not registered was built")
	}
	if _, ok, _ := FromFactory(factory).Registered(); ok {
		t.Error("a factory registers nothing, and Registered says that it does")
	}
	_, _, err = FromRegister("a", func(*admission.Plugins) { var none *int; *none = 1 }).Registered()
	var panicked *PanicError
	if !errors.As(err, &panicked) {
		t.Errorf("a register function that panics gives %v, want a *PanicError", err)
	}
}
