package fakes

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/util/webhook"
)

// APIServerID is the identity that an Initializer gives to plugins that want the ID of their
// API server.
const APIServerID = "apiserver-admissiontest"

// errNoEffectiveVersion is the error for a plugin that wants the effective version. It says what to
// add.
var errNoEffectiveVersion = errors.New(`there is no value to give, so it was not called: add effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.36")), of package fakes/effectiveversion, to NewInitializer`)

// step is one injection of an Initializer.
type step struct {
	name     string
	methods  []string
	concrete string
	// extra is true for an Injector that the caller of NewInitializer added. replaces is true if
	// that Injector replaces an injection of Kubernetes.
	extra, replaces bool
	bind            func(admission.Interface) (func() error, bool)
}

// ofKubernetes returns the step of an interface of Kubernetes.
func (i *Initializer) ofKubernetes(wants minor.Wants) step {
	return step{
		name: wants.Interface, methods: []string{wants.Method},
		bind: func(plugin admission.Interface) (func() error, bool) {
			setter, err := wants.Setter(plugin)
			if err != nil {
				return nil, false // Strict reports why
			}
			return func() error {
				value, err := i.value(wants.Interface, setter.Param())
				if err != nil {
					return notCalledError{err}
				}
				return setter.Set(value)
			}, true
		},
	}
}

// notCalledError is the error of a setter that was not called.
type notCalledError struct{ error }

func (e notCalledError) Unwrap() error { return e.error }

// value returns the value for the setter of an interface of Kubernetes.
func (i *Initializer) value(wants string, param reflect.Type) (any, error) {
	if wants == "WantsUnconditionalAuthorizer" {
		wants = "WantsAuthorizer" // an API server has one authorizer for both
	}
	if given, ok := i.given[wants]; ok {
		return given, nil
	}
	switch wants {
	case "WantsAPIServerID":
		return APIServerID, nil
	case "WantsDrainedNotification":
		return (<-chan struct{})(i.drained), nil
	case "WantsEffectiveVersion":
		return nil, errNoEffectiveVersion
	case "WantsFeatures":
		return Gates(nil), nil
	case "WantsAuthorizer":
		if i.world == nil {
			return Allow(), nil
		}
		return i.world.Authorizer(), nil
	case "WantsServiceResolver":
		return noServices{}, nil
	case "WantsAuthenticationInfoResolverWrapper":
		return webhook.AuthenticationInfoResolverWrapper(keepResolver), nil
	case "WantsQuotaConfiguration":
		return Quota(), nil
	case "WantsExcludedAdmissionResources":
		return excludedResources(), nil
	case "WantsManifestLoaders":
		return minor.Idle(param), nil
	}
	return i.ofWorld(wants)
}

// ofWorld returns the value for the setter of an interface of Kubernetes, from the World.
func (i *Initializer) ofWorld(wants string) (any, error) {
	if i.world == nil {
		return nil, errors.New("there is no World to take it from, so it was not called: give NewInitializer a World")
	}
	switch wants {
	case "WantsExternalKubeClientSet":
		return i.world.Client(), nil
	case "WantsDynamicClient":
		return i.world.Dynamic(), nil
	case "WantsExternalKubeInformerFactory":
		return i.world.Informers(), nil
	case "WantsRESTMapper":
		return i.world.RESTMapper(), nil
	}
	return nil, fmt.Errorf("no value is known for %s: this is a defect of package fakes", wants)
}

// excludedResources returns the resources for which kube-apiserver calls no webhooks and no
// policies: reviews, whose interception can break a cluster.
func excludedResources() []schema.GroupResource {
	return []schema.GroupResource{
		{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
		{Group: "authentication.k8s.io", Resource: "tokenreviews"},
		{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
		{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
		{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
		{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	}
}

// guarded calls a setter. If it panics, the error has the place of the panic. called is false
// if there was no value for the setter.
func guarded(set func() error) (called bool, err error) {
	defer func() {
		if text := recover(); text != nil {
			position := observe.PanicPosition()
			called, err = true, fmt.Errorf("it panicked: %v\n\tat %s", text, position)
		}
	}()
	err = set()
	var uncalled notCalledError
	return !errors.As(err, &uncalled), err
}
