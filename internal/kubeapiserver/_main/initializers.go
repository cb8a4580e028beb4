package main

import (
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server"
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

// collectorName is the name of the collector among the plugins.
const collectorName = "AdmissiontestCollector"

// collector is a plugin that handles no request. kube-apiserver cannot be given more initializers. But it makes and
// initializes one plugin after another, and this one first: so the collector knows what kube-apiserver's initializers
// set when the plugins of the user are made.
type collector struct{ config server.RecommendedConfig }

// Handles returns false.
func (*collector) Handles(admission.Operation) bool { return false }

// ValidateInitialization returns nil. Plugins that are initialized have it.
func (*collector) ValidateInitialization() error { return nil }

// register registers the collector.
func (c *collector) register(plugins *admission.Plugins) {
	plugins.Register(collectorName, func(io.Reader) (admission.Interface, error) { return c, nil })
}

// initialized returns a function that registers the same plugins as register. When one is made, it is
// initialized with the initializers own, before kube-apiserver's.
func (c *collector) initialized(register func(*admission.Plugins), own initializers) func(*admission.Plugins) {
	return func(plugins *admission.Plugins) {
		inner := admission.NewPlugins()
		register(inner)
		for _, name := range inner.Registered() {
			plugins.Register(name, func(config io.Reader) (admission.Interface, error) {
				all, err := own(&c.config)
				if err != nil {
					return nil, fmt.Errorf("Initializers: %w", err)
				}
				return create(inner, name, config, all)
			})
		}
	}
}

// create calls the factory of a plugin, and the initializers. Plugins has no method for that, so the plugin is taken from
// its initialization, which can fail: kube-apiserver has not initialized it yet.
func create(plugins *admission.Plugins, name string, config io.Reader, all admission.PluginInitializers) (plugin admission.Interface, err error) {
	_, err = plugins.InitPlugin(name, config, take(func(made admission.Interface) {
		all.Initialize(made)
		plugin = made
	}))
	if plugin != nil {
		return plugin, nil
	}
	return nil, err
}

// take is an initializer that only passes the plugin to a function.
type take func(admission.Interface)

// Initialize takes the plugin.
func (t take) Initialize(plugin admission.Interface) { t(plugin) }

// SetExternalKubeClientSet notes how clients reach the API server.
func (c *collector) SetExternalKubeClientSet(client kubernetes.Interface) {
	if typed, ok := client.CoreV1().RESTClient().(*rest.RESTClient); ok && typed.Client != nil {
		url := typed.Get().URL()
		c.config.LoopbackClientConfig = &rest.Config{Host: url.Scheme + "://" + url.Host, Transport: typed.Client.Transport, QPS: -1}
		c.config.ClientConfig = c.config.LoopbackClientConfig
	}
}

// SetExternalKubeInformerFactory notes the informers.
func (c *collector) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	c.config.SharedInformerFactory = factory
}

// SetAuthorizer notes the authorizer.
func (c *collector) SetAuthorizer(a authorizer.Authorizer) { c.config.Authorization.Authorizer = a }

// InspectFeatureGates notes the feature gates.
func (c *collector) InspectFeatureGates(gates featuregate.FeatureGate) { c.config.FeatureGate = gates }

// InspectEffectiveVersion notes the version. Kubernetes 1.34 does not call it.
func (c *collector) InspectEffectiveVersion(version compatibility.EffectiveVersion) {
	c.config.EffectiveVersion = version
}
