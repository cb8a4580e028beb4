// Package builtin has the admission plugins of k8s.io/apiserver, for chains of plugins.
//
//	hooks := builtin.NewHooks(t, w)
//	hooks.Install(configuration, map[string]hook.Script{"a.example.com": script})
//	plugins := slices.Insert(builtin.Plugins(), 1, harness.FromRegister(PluginName, Register))
//	h := harness.NewChain(t, harness.Chain{Plugins: plugins}, harness.WithWorld(w))
//
// It is a separate package because these plugins depend on more than package harness: CEL, gRPC
// and a command-line library.
//
// The package is public for tests of plugins whose behaviour depends on Kubernetes' own plugins
// before or after them.
//
// # Promise
//
// The plugins are the unchanged plugins of the Kubernetes version in your go.mod. Webhooks are
// called over TLS. A webhook configuration that is put into the World later takes effect at once.
//
// # Not promised
//
// The World does not set defaults and does not validate: [Stored] sets the defaults. As in an API
// server, it can take up to a second until the chain uses a policy that was put into the World
// after the chain was made. A MutatingAdmissionPolicy needs the OpenAPI schema of the kind that it
// changes. A World has the schemas of Kubernetes' own types; for other kinds the plugin refuses the
// request. Before Kubernetes 1.36, the feature gate of MutatingAdmissionPolicy is off by default.
package builtin

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
// ValidatingAdmissionWebhook. They are the plugins of NewAdmissionOptions in package
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

// ResourceQuota returns the plugin ResourceQuota. In kube-apiserver it comes after the plugins that
// Plugins returns. It counts only what the evaluators in the configuration of
// fakes.InjectQuotaConfiguration count.
func ResourceQuota() harness.Source {
	return harness.FromRegister(resourcequota.PluginName, resourcequota.Register)
}
