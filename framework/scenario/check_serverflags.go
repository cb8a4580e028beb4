package scenario

// value is what the value of a flag of kube-apiserver means.
type value string

const (
	// setting is no path and no address.
	setting value = "setting"
	// configuration is the path of a file that can name other files, commands and addresses.
	configuration value = "configuration"
	// data is the path of a file of tokens or ABAC policies, which cannot. Its name ends with .csv or .jsonl.
	data value = "data"
)

// serverFlags has the flags of kube-apiserver that a scenario can set, and what their values mean. Each is
// here because of what scenarios test. No other flag is needed for that, and many of the others read or write
// files of the user, open ports, or send credentials elsewhere.
func serverFlags() map[string]value {
	return map[string]value{
		// Which admission plugins run, and their configuration.
		"admission-control":                      setting,
		"admission-control-config-file":          configuration,
		"default-not-ready-toleration-seconds":   setting, // plugin DefaultTolerationSeconds
		"default-unreachable-toleration-seconds": setting, // plugin DefaultTolerationSeconds
		"disable-admission-plugins":              setting,
		"enable-admission-plugins":               setting,

		// What the API server serves: kinds and fields that are not on by default.
		"allow-privileged":                            setting, // validation of pods
		"emulated-version":                            setting,
		"emulation-forward-compatible":                setting,
		"feature-gates":                               setting,
		"runtime-config":                              setting,
		"runtime-config-emulation-forward-compatible": setting,

		// Who the user of a request is: policies and webhooks see it.
		"anonymous-auth":                           setting,
		"authentication-config":                    configuration,
		"authentication-token-webhook-cache-ttl":   setting,
		"authentication-token-webhook-config-file": configuration,
		"authentication-token-webhook-version":     setting,
		"token-auth-file":                          data, // lines of CSV

		// What a user may do: admission comes after it, and the variable authorizer of CEL asks it.
		"authorization-config":                         configuration,
		"authorization-mode":                           setting,
		"authorization-policy-file":                    data, // lines of JSON (ABAC)
		"authorization-webhook-cache-authorized-ttl":   setting,
		"authorization-webhook-cache-unauthorized-ttl": setting,
		"authorization-webhook-config-file":            configuration,
		"authorization-webhook-version":                setting,

		// Audit annotations of policies and webhooks.
		"audit-policy-file":         configuration,
		"audit-webhook-config-file": configuration,
		"audit-webhook-mode":        setting,
		"audit-webhook-version":     setting,

		// How the API server calls webhooks, how long, and how many requests are admitted at once.
		"egress-selector-config-file":    configuration,
		"enable-priority-and-fairness":   setting,
		"max-mutating-requests-inflight": setting,
		"max-requests-inflight":          setting,
		"request-timeout":                setting,

		// What the log says, which spec.server.fails compares.
		"v":       setting,
		"vmodule": setting,
	}
}
