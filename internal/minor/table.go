package minor

// Wants is an interface by which plugins ask for a value.
type Wants struct {
	// Interface is the name of the interface. Method is the name of its setter.
	Interface, Method string
	// Param is the type of the setter's parameter, in the form of Name.
	Param string
	// Validates is true if ValidateInitialization is part of the interface. Then a plugin that has
	// only the setter does not get the value.
	Validates bool
	// Since is the first minor with the interface ("0.36"), among the minors that this module
	// supports.
	Since string
}

// Table returns the interfaces for which an API server has values, in its order: the API
// server's ID, the generic initializer, then webhooks, quota and manifests.
func Table() []Wants {
	return []Wants{
		{"WantsAPIServerID", "SetAPIServerID", "string", true, "0.36"},
		{"WantsDrainedNotification", "SetDrainedNotification", "<-chan struct {}", true, "0.34"},
		{"WantsEffectiveVersion", "InspectEffectiveVersion", "k8s.io/component-base/compatibility.EffectiveVersion", true, "0.35"},
		{"WantsFeatures", "InspectFeatureGates", "k8s.io/component-base/featuregate.FeatureGate", true, "0.34"},
		{"WantsExternalKubeClientSet", "SetExternalKubeClientSet", "k8s.io/client-go/kubernetes.Interface", true, "0.34"},
		{"WantsDynamicClient", "SetDynamicClient", "k8s.io/client-go/dynamic.Interface", true, "0.34"},
		{"WantsExternalKubeInformerFactory", "SetExternalKubeInformerFactory", "k8s.io/client-go/informers.SharedInformerFactory", true, "0.34"},
		{"WantsUnconditionalAuthorizer", "SetUnconditionalAuthorizer", "k8s.io/apiserver/pkg/authorization/authorizer.UnconditionalAuthorizer", true, "0.37"},
		{"WantsAuthorizer", "SetAuthorizer", "k8s.io/apiserver/pkg/authorization/authorizer.Authorizer", true, "0.34"},
		{"WantsRESTMapper", "SetRESTMapper", "k8s.io/apimachinery/pkg/api/meta.RESTMapper", true, "0.34"},
		{"WantsServiceResolver", "SetServiceResolver", "k8s.io/apiserver/pkg/util/webhook.ServiceResolver", false, "0.34"},
		{"WantsAuthenticationInfoResolverWrapper", "SetAuthenticationInfoResolverWrapper", "k8s.io/apiserver/pkg/util/webhook.AuthenticationInfoResolverWrapper", true, "0.34"},
		{"WantsQuotaConfiguration", "SetQuotaConfiguration", "k8s.io/apiserver/pkg/quota/v1.Configuration", true, "0.34"},
		{"WantsExcludedAdmissionResources", "SetExcludedAdmissionResources", "[]k8s.io/apimachinery/pkg/runtime/schema.GroupResource", true, "0.34"},
		{"WantsManifestLoaders", "SetManifestLoaders", "*k8s.io/apiserver/pkg/admission/initializer.ManifestLoaders", false, "0.36"},
	}
}

// NeverInjected returns the interfaces that k8s.io/apiserver declares and that no API
// server injects.
func NeverInjected() []Wants {
	return []Wants{
		{"WantsSchemaResolver", "SetSchemaResolver", "k8s.io/apiserver/pkg/cel/openapi/resolver.SchemaResolver", true, "0.34"},
	}
}
