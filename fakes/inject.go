package fakes

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/component-base/featuregate"
)

// Injector gives a plugin one thing, if it wants it. One that was not made by a
// function of this package is an error of [Initializer.Err].
type Injector struct {
	name string
	// bind returns what calls the plugin's setter, if it has the interface.
	bind func(admission.Interface) (func() error, bool)
	// methods are those of the interface, the setter first; none where concrete, the
	// name of a type that is no interface, is set.
	methods  []string
	concrete string
	// value is for an upstream setter, where bind is nil.
	value any
	wrong error
}

// Inject is the Injector of plugins that have the interface W. Name is how logs and
// Skip call it; the name of an upstream interface ("WantsAuthorizer") puts it in that
// one's place. Setters of several arguments, and several setters, are for set to call:
//
//	fakes.Inject("WantsKcpInformers", func(p WantsKcpInformers) { p.SetKcpInformers(local, global) })
func Inject[W any](name string, set func(W)) Injector {
	injector := Injector{name: name}
	if set == nil {
		injector.wrong = errors.New("it has nothing to inject: the function given to Inject is nil")
		return injector
	}
	injector.methods, injector.concrete = settersOf(reflect.TypeFor[W]())
	injector.bind = func(plugin admission.Interface) (func() error, bool) {
		wants, ok := any(plugin).(W)
		return func() error { set(wants); return nil }, ok
	}
	return injector
}

// settersOf returns the methods of an interface, one that begins with Set or Inspect
// first, or the name of a type that is none.
func settersOf(t reflect.Type) (methods []string, concrete string) {
	if t.Kind() != reflect.Interface {
		return nil, t.String()
	}
	var others []string
	for n := range t.NumMethod() {
		switch name := t.Method(n).Name; {
		case injects(name):
			methods = append(methods, name)
		case name != minor.Validator && name != "Handles":
			others = append(others, name)
		}
	}
	return append(methods, others...), ""
}

// injects is whether a method's name is that of a setter: "SetX" or "InspectX".
func injects(method string) bool {
	for _, prefix := range []string{"Set", "Inspect"} {
		rest, ok := strings.CutPrefix(method, prefix)
		if ok && rest != "" && (rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
	}
	return false
}

// Name returns the Injector's name.
func (i Injector) Name() string { return i.name }

// flaw says why an Injector cannot be used.
func (i Injector) flaw() error {
	switch {
	case i.name == "":
		return errors.New("it has no name: make it with fakes.Inject and a name")
	case i.wrong != nil:
		return fmt.Errorf("%s: %w", i.name, i.wrong)
	}
	return nil
}

// An Injector of the name of an upstream one takes its place in NewInitializer.

// InjectAuthorizer gives this authorizer, in place of one that allows everything: to
// WantsAuthorizer and, where Kubernetes has it, WantsUnconditionalAuthorizer.
func InjectAuthorizer(a authorizer.Authorizer) Injector { return valued("WantsAuthorizer", a) }

// InjectFeatureGates gives these gates, in place of the API server's defaults.
func InjectFeatureGates(gates featuregate.FeatureGate) Injector {
	return valued("WantsFeatures", gates)
}

// InjectQuotaConfiguration gives this configuration, in place of an empty one.
func InjectQuotaConfiguration(configuration quota.Configuration) Injector {
	return valued("WantsQuotaConfiguration", configuration)
}

// InjectServiceResolver gives this resolver, in place of one that knows no service.
func InjectServiceResolver(resolver webhook.ServiceResolver) Injector {
	return valued("WantsServiceResolver", resolver)
}

// InjectAuthenticationInfoResolverWrapper gives this wrapper, in place of one that
// leaves the plugin's resolver as it is.
func InjectAuthenticationInfoResolverWrapper(wrapper webhook.AuthenticationInfoResolverWrapper) Injector {
	return valued("WantsAuthenticationInfoResolverWrapper", wrapper)
}

// valued is the Injector of a value for an upstream setter.
func valued(name string, value any) Injector {
	injector := Injector{name: name, value: value}
	if missing(value) {
		injector.wrong = errors.New("the value is nil: give one, leave the Injector out, or Skip the injection")
	}
	return injector
}

// missing is whether a value is nil, or a nil pointer or function. A nil map is an
// empty one.
func missing(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil()
}
