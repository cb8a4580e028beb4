package main

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// initializers is the type of the function Initializers of a package with plugins. It is the same
// type as that of RecommendedOptions.ExtraAdmissionInitializers in
// k8s.io/apiserver/pkg/server/options.
type initializers func(*server.RecommendedConfig) ([]admission.PluginInitializer, error)

// initialized returns a function that registers the same plugins as register, and also initializes
// them with the initializers own. kube-apiserver cannot be given more initializers, so each plugin
// is registered in a wrapper. The wrapper passes on the values that kube-apiserver's initializers
// set, and runs the initializers own before the plugin is validated.
func initialized(register func(*admission.Plugins), own initializers) func(*admission.Plugins) {
	return func(plugins *admission.Plugins) {
		inner := admission.NewPlugins()
		register(inner)
		for _, name := range inner.Registered() {
			plugins.Register(name, func(config io.Reader) (admission.Interface, error) {
				plugin, err := create(inner, name, config)
				if plugin == nil || err != nil {
					return nil, err
				}
				return wrap(&wrapper{Interface: plugin, own: own}), nil
			})
		}
	}
}

// create calls the factory of a plugin. Plugins has no method for that, so the plugin is taken from
// its initialization, which fails: it is not initialized yet.
func create(plugins *admission.Plugins, name string, config io.Reader) (plugin admission.Interface, err error) {
	_, err = plugins.InitPlugin(name, config, take(func(made admission.Interface) { plugin = made }))
	if plugin != nil {
		return plugin, nil
	}
	return nil, err
}

// take is an initializer that only passes the plugin to a function.
type take func(admission.Interface)

// Initialize takes the plugin.
func (t take) Initialize(plugin admission.Interface) { t(plugin) }

// wrapper passes on the values that initializers set.
type wrapper struct {
	admission.Interface
	own    initializers
	config server.RecommendedConfig
}

// These types add the methods of the phases that the plugin has.
type (
	mutator   struct{ *wrapper }
	validator struct{ *wrapper }
	both      struct {
		*wrapper
		mutator   mutator
		validator validator
	}
)

func wrap(w *wrapper) admission.Interface {
	_, mutates := w.Interface.(admission.MutationInterface)
	_, validates := w.Interface.(admission.ValidationInterface)
	switch {
	case mutates && validates:
		return both{w, mutator{w}, validator{w}}
	case mutates:
		return mutator{w}
	case validates:
		return validator{w}
	default:
		return w
	}
}

// Admit calls the plugin.
func (m mutator) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return m.Interface.(admission.MutationInterface).Admit(ctx, a, o)
}

// Validate calls the plugin.
func (v validator) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return v.Interface.(admission.ValidationInterface).Validate(ctx, a, o)
}

// Admit calls the plugin.
func (b both) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return b.mutator.Admit(ctx, a, o)
}

// Validate calls the plugin.
func (b both) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return b.validator.Validate(ctx, a, o)
}

// ValidateInitialization runs the initializers of the plugin's package, and validates the plugin.
func (w *wrapper) ValidateInitialization() error {
	all, err := w.own(&w.config)
	if err != nil {
		return fmt.Errorf("Initializers: %w", err)
	}
	admission.PluginInitializers(all).Initialize(w.Interface)
	return admission.ValidateInitialization(w.Interface)
}

// SetExternalKubeClientSet notes how clients reach the API server.
func (w *wrapper) SetExternalKubeClientSet(client kubernetes.Interface) {
	if typed, ok := client.CoreV1().RESTClient().(*rest.RESTClient); ok && typed.Client != nil {
		url := typed.Get().URL()
		w.config.LoopbackClientConfig = &rest.Config{Host: url.Scheme + "://" + url.Host, Transport: typed.Client.Transport, QPS: -1}
		w.config.ClientConfig = w.config.LoopbackClientConfig
	}
	if wants, ok := w.Interface.(initializer.WantsExternalKubeClientSet); ok {
		wants.SetExternalKubeClientSet(client)
	}
}

// SetExternalKubeInformerFactory notes the informers.
func (w *wrapper) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	w.config.SharedInformerFactory = factory
	if wants, ok := w.Interface.(initializer.WantsExternalKubeInformerFactory); ok {
		wants.SetExternalKubeInformerFactory(factory)
	}
}

// SetAuthorizer notes the authorizer.
func (w *wrapper) SetAuthorizer(a authorizer.Authorizer) {
	w.config.Authorization.Authorizer = a
	if wants, ok := w.Interface.(initializer.WantsAuthorizer); ok {
		wants.SetAuthorizer(a)
	}
}

// InspectFeatureGates notes the feature gates.
func (w *wrapper) InspectFeatureGates(gates featuregate.FeatureGate) {
	w.config.FeatureGate = gates
	if wants, ok := w.Interface.(initializer.WantsFeatures); ok {
		wants.InspectFeatureGates(gates)
	}
}

// InspectEffectiveVersion notes the version. Kubernetes 1.34 does not call it.
func (w *wrapper) InspectEffectiveVersion(version compatibility.EffectiveVersion) {
	w.config.EffectiveVersion = version
	if wants, ok := w.Interface.(interface {
		InspectEffectiveVersion(compatibility.EffectiveVersion)
	}); ok {
		wants.InspectEffectiveVersion(version)
	}
}

// SetDrainedNotification passes it on.
func (w *wrapper) SetDrainedNotification(drained <-chan struct{}) {
	if wants, ok := w.Interface.(initializer.WantsDrainedNotification); ok {
		wants.SetDrainedNotification(drained)
	}
}

// SetDynamicClient passes it on.
func (w *wrapper) SetDynamicClient(client dynamic.Interface) {
	if wants, ok := w.Interface.(initializer.WantsDynamicClient); ok {
		wants.SetDynamicClient(client)
	}
}

// SetRESTMapper passes it on.
func (w *wrapper) SetRESTMapper(mapper meta.RESTMapper) {
	if wants, ok := w.Interface.(initializer.WantsRESTMapper); ok {
		wants.SetRESTMapper(mapper)
	}
}

// SetQuotaConfiguration passes it on.
func (w *wrapper) SetQuotaConfiguration(configuration quota.Configuration) {
	if wants, ok := w.Interface.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(configuration)
	}
}

// SetSchemaResolver passes it on.
func (w *wrapper) SetSchemaResolver(schemas resolver.SchemaResolver) {
	if wants, ok := w.Interface.(initializer.WantsSchemaResolver); ok {
		wants.SetSchemaResolver(schemas)
	}
}

// SetExcludedAdmissionResources passes them on.
func (w *wrapper) SetExcludedAdmissionResources(resources []schema.GroupResource) {
	if wants, ok := w.Interface.(initializer.WantsExcludedAdmissionResources); ok {
		wants.SetExcludedAdmissionResources(resources)
	}
}

// SetServiceResolver passes it on.
func (w *wrapper) SetServiceResolver(services webhook.ServiceResolver) {
	if wants, ok := w.Interface.(webhookinit.WantsServiceResolver); ok {
		wants.SetServiceResolver(services)
	}
}

// SetAuthenticationInfoResolverWrapper passes it on.
func (w *wrapper) SetAuthenticationInfoResolverWrapper(wrapped webhook.AuthenticationInfoResolverWrapper) {
	if wants, ok := w.Interface.(webhookinit.WantsAuthenticationInfoResolverWrapper); ok {
		wants.SetAuthenticationInfoResolverWrapper(wrapped)
	}
}

// SetAPIServerID passes it on. Only Kubernetes 1.36 and later call it.
func (w *wrapper) SetAPIServerID(id string) {
	if wants, ok := w.Interface.(interface{ SetAPIServerID(string) }); ok {
		wants.SetAPIServerID(id)
	}
}
