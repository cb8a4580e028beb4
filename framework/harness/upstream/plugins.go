// Package upstream has the admission plugins of k8s.io/apiserver, for chains of plugins.
//
//	hooks := upstream.NewHooks(t, w)
//	hooks.Install(configuration, map[string]hook.Script{"a.example.com": script})
//	plugins := slices.Insert(upstream.Plugins(), 1, harness.FromRegister(PluginName, Register))
//	h := harness.NewChain(t, harness.Chain{Plugins: plugins}, harness.WithWorld(w))
//
// It is a separate package because these plugins depend on more than package harness: CEL, gRPC
// and a command-line library.
//
// The package is public for plugins that depend on what Kubernetes' own plugins do before or
// after them.
//
// # Promise
//
// The plugins are those of the importing module's version of Kubernetes, unchanged. Webhooks are
// called over TLS. Webhook configurations that the World gets later are used at once.
//
// # Not promised
//
// The World stores what it gets: it neither defaults nor validates. [Stored] sets the defaults.
// Policies that the World gets after the chain was made are used up to a second later, as in an
// API server. A MutatingAdmissionPolicy needs the OpenAPI schema of the kind that it changes, which
// a World has for Kubernetes' own types; the plugin refuses a request for another one. Before
// Kubernetes 1.36, its feature gate is off by default.
package upstream

import (
	"github.com/admissiontest/admissiontest/framework/harness"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
)

// Plugins returns the plugins that every API server has, in their order: NamespaceLifecycle,
// MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy and
// ValidatingAdmissionWebhook. They are those of NewAdmissionOptions in package
// k8s.io/apiserver/pkg/server/options.
func Plugins() []harness.Source {
	return []harness.Source{
		harness.FromRegister(lifecycle.PluginName, lifecycle.Register),
		harness.FromRegister(mutatingpolicy.PluginName, mutatingpolicy.Register),
		harness.FromRegister(mutatingwebhook.PluginName, mutatingwebhook.Register),
		harness.FromRegister(validatingpolicy.PluginName, validatingpolicy.Register),
		harness.FromRegister(validatingwebhook.PluginName, validatingwebhook.Register),
	}
}

// ResourceQuota returns the plugin of that name. In kube-apiserver it comes after those of
// Plugins. It counts what the evaluators of fakes.InjectQuotaConfiguration count.
func ResourceQuota() harness.Source {
	return harness.FromRegister(resourcequota.PluginName, resourcequota.Register)
}
