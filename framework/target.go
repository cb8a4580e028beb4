package framework

import "context"

// The kinds of Target.
const (
	TargetChain      = "chain"
	TargetEnvtest    = "envtest"
	TargetKind       = "kind"
	TargetKubeconfig = "kubeconfig"
)

// AbilityAudit is the ability of a Target to read the API server's audit log.
const AbilityAudit = "audit"

// AbilityCredentials is the ability of a Target to have its API server present
// credentials to webhooks that are called by the name localhost.
const AbilityCredentials = "webhook-credentials"

// AbilityHookService is the ability of a Target to lead its API server to our Hooks
// through a Service of type ExternalName in any namespace.
const AbilityHookService = "hook-service"

// AbilityDefaultPort is the ability of a Target to have our Hooks at port 443.
const AbilityDefaultPort = "hooks-at-443"

// How the API server of a Target reaches our Hooks.
const (
	// TransportURL: by an address of this machine, in clientConfig.url.
	TransportURL = "url"
	// TransportService: through a Service in the cluster, in clientConfig.service.
	TransportService = "service"
)

// Abilities returns every ability that a Target can have and a scenario can need.
func Abilities() []string {
	return []string{AbilityAudit, AbilityCredentials, AbilityHookService, AbilityDefaultPort}
}

// TargetInfo describes a Target.
type TargetInfo struct {
	// Kind is one of the Target kinds: "envtest".
	Kind string
	// ServerVersion is the API server's gitVersion, "v1.36.3".
	ServerVersion string
	// FeatureGates are the gates the server reports, by name. Nil where it does not
	// let us read them.
	FeatureGates map[string]bool
	// User is the name of the user that Requests are sent as unless they
	// impersonate. Empty where it is not known.
	User string
	// Abilities are those that this Target has.
	Abilities []string
	// Transport is how the API server reaches our Hooks: "url" or "service". Empty
	// where no webhook is called.
	Transport string
}

// Target is somewhere admission happens: one question, one answer. What it takes
// to arrange a scenario there is the engine's Target.
type Target interface {
	// Info describes the Target. It asks nobody and cannot fail.
	Info() TargetInfo
	// Do sends one Request and returns what came back. A refusal is a Result; an
	// error means that no answer was had.
	Do(ctx context.Context, request Request) (Result, error)
}
