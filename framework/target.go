package framework

import "context"

// The kinds of Target.
const (
	TargetEnvtest    = "envtest"
	TargetKind       = "kind"
	TargetKubeconfig = "kubeconfig"
)

// The capabilities that some Targets have and a scenario can need.
const (
	// CapabilityAudit: the audit log of the API server can be read.
	CapabilityAudit = "audit"
	// CapabilityCredentials: the API server presents credentials to webhooks that it
	// calls by the name localhost.
	CapabilityCredentials = "webhook-credentials"
	// CapabilityHookService: a Service of type ExternalName, in any namespace, can lead
	// the API server to the Hook server.
	CapabilityHookService = "hook-service"
	// CapabilityDefaultPort: the Hook server listens on port 443.
	CapabilityDefaultPort = "hooks-at-443"
	// CapabilityControllers: kube-controller-manager runs. The Target decides this by its Lease.
	CapabilityControllers = "controllers"
)

// CapabilityObservedPlugins says that the API server records the calls of its admission plugins.
// Capabilities does not return it, because scenarios do not name it: every scenario that expects
// calls of plugins needs it.
const CapabilityObservedPlugins = "observed-plugins"

// PluginPrefix is the prefix of a need for an enabled compiled-in admission plugin:
// "plugin/LimitRanger". TargetInfo.Capabilities has no such needs, because a Target finds out only
// on demand whether a plugin is enabled.
const PluginPrefix = "plugin/"

// Capabilities returns the capabilities that a scenario can name in its needs.
func Capabilities() []string {
	return []string{CapabilityAudit, CapabilityCredentials, CapabilityHookService, CapabilityDefaultPort, CapabilityControllers}
}

// The ways in which an API server reaches the Hook server.
const (
	// TransportURL uses an address of this machine, in clientConfig.url.
	TransportURL = "url"
	// TransportService uses a Service in the cluster, in clientConfig.service.
	TransportService = "service"
)

// TargetInfo describes a Target.
type TargetInfo struct {
	// Kind is one of the kinds of Target: "envtest".
	Kind string
	// ServerVersion is the gitVersion of the API server: "v1.36.3".
	ServerVersion string
	// FeatureGates are the feature gates of the server by name. Nil if the client may not read
	// them.
	FeatureGates map[string]bool
	// User is the name of the client's own user, which sends Requests without a User. Empty if it
	// is not known.
	User string
	// Capabilities are the capabilities that this Target has.
	Capabilities []string
	// Transport is how the API server reaches the Hook server: "url" or "service". Empty
	// if the Target calls no webhooks.
	Transport string
	// Plugins are the names of the admission plugins that were compiled into the API server in
	// addition to its own. Nil if there are none.
	Plugins []string
	// ServedKinds are the kinds that the API server served when the Target was made, sorted:
	// "apps/v1 Deployment".
	ServedKinds []string
	// Served is true if admissiontest serve runs the API server, for several runs.
	Served bool
}

// Target is an API server, or a plugin in this process: it carries out Requests and their
// admission.
type Target interface {
	// Info describes the Target. It sends no request.
	Info() TargetInfo
	// Do sends one Request and returns the Result with its Trace. If the server or plugin refuses
	// the Request, that is a Result and not an error. The error is an ErrFieldNotSupported if the
	// Target cannot use a field of the Request, and an ErrNoResponse if no response came.
	Do(ctx context.Context, request Request) (Result, error)
}
