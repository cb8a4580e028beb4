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

// Injector injects a value into plugins that want it. Make an Injector with Inject or another
// function whose name begins with Inject. For the zero value, [Initializer.Err] returns an error.
type Injector struct {
	name string
	// bind returns a function that calls the plugin's setter, if the plugin has the interface.
	bind func(admission.Interface) (func() error, bool)
	// methods are the methods of the interface, the setter first. If the type is not an interface,
	// there are no methods, and concrete is the name of the type.
	methods  []string
	concrete string
	// value is for a setter of Kubernetes, if bind is nil.
	value any
	wrong error
}

// Inject returns an Injector for plugins that implement the interface W. The function set calls one
// or several setters of the plugin. Log and Skip use the name. The name of a Wants interface of
// Kubernetes, such as "WantsAuthorizer", replaces the injection for that interface:
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

// settersOf returns the methods of an interface, first a method whose name begins with Set or
// Inspect. For a type that is not an interface, it returns the name of the type.
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

// injects reports whether a method has the name of a setter: "SetX" or "InspectX".
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

// flaw returns an error if the Injector cannot be used.
func (i Injector) flaw() error {
	switch {
	case i.name == "":
		return errors.New("it has no name: make it with fakes.Inject and a name")
	case i.wrong != nil:
		return fmt.Errorf("%s: %w", i.name, i.wrong)
	}
	return nil
}

// NewInitializer replaces an injection of Kubernetes by an Injector of the same name.

// InjectAuthorizer gives plugins this authorizer instead of the World's. It is for WantsAuthorizer
// and, since Kubernetes 1.37, WantsUnconditionalAuthorizer.
func InjectAuthorizer(a authorizer.Authorizer) Injector { return valued("WantsAuthorizer", a) }

// InjectFeatureGates gives plugins these gates instead of an API server's defaults: see Gates.
func InjectFeatureGates(with featuregate.FeatureGate) Injector {
	injector := valued("WantsFeatures", with)
	if own, ok := with.(gates); ok && own.wrong != nil {
		injector.wrong = own.wrong
	}
	return injector
}

// InjectQuotaConfiguration gives plugins this configuration instead of an empty one.
func InjectQuotaConfiguration(configuration quota.Configuration) Injector {
	return valued("WantsQuotaConfiguration", configuration)
}

// InjectServiceResolver gives plugins this resolver instead of one without services.
func InjectServiceResolver(resolver webhook.ServiceResolver) Injector {
	return valued("WantsServiceResolver", resolver)
}

// InjectAuthenticationInfoResolverWrapper gives plugins this wrapper instead of one that
// returns the plugin's resolver.
func InjectAuthenticationInfoResolverWrapper(wrapper webhook.AuthenticationInfoResolverWrapper) Injector {
	return valued("WantsAuthenticationInfoResolverWrapper", wrapper)
}

// valued returns the Injector that replaces the value of an interface of Kubernetes.
func valued(name string, value any) Injector {
	injector := Injector{name: name, value: value}
	if missing(value) {
		injector.wrong = errors.New("the value is nil: give one, leave the Injector out, or Skip the injection")
	}
	return injector
}

// missing reports whether a value is nil, or a nil pointer or function. A nil map is not missing:
// it is an empty map.
func missing(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil()
}
