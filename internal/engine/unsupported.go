package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// unsupported returns why the target cannot run the scenario, or "".
func unsupported(s scenario.Scenario, info framework.TargetInfo) string {
	if reason := OtherMinor(s, info.ServerVersion); reason != "" {
		return reason
	}
	if reason := gateOff(s, info.FeatureGates); reason != "" {
		return reason
	}
	if s.ObservesPlugins() && !slices.Contains(info.Capabilities, framework.CapabilityObservedPlugins) {
		return "the scenario expects calls of admission plugins, but this API server does not record them: use target envtest with a kube-apiserver that \"admissiontest assets build\" built"
	}
	for _, need := range s.Spec.Needs {
		if !strings.HasPrefix(need, framework.PluginPrefix) && !slices.Contains(info.Capabilities, need) {
			return fmt.Sprintf("needs %s, which this target does not have", need)
		}
	}
	return ""
}

// gateOff returns why a server that is not too old lacks the feature of the scenario, or "".
// Nil gates are not known. A server does not list a gate any more after its feature is
// generally available and the gate was removed. So a gate that is not listed counts as on
// since the version of the scenario; a scenario without a version does not say whether the
// server is older than the gate or newer.
func gateOff(s scenario.Scenario, gates map[string]bool) string {
	gate := s.Spec.FeatureGate
	if gate == "" || gates == nil {
		return ""
	}
	switch enabled, listed := gates[gate]; {
	case enabled, !listed && s.Spec.Since != "":
		return ""
	case !listed:
		return fmt.Sprintf("needs feature gate %s, which the server does not list; if the server has no such gate any more because the feature is always on, set spec.since in the scenario", gate)
	default:
		return fmt.Sprintf("needs feature gate %s, which is disabled on the server", gate)
	}
}

// aloneUnsupported is the reason why an API server with other clients runs no scenario that runs alone.
const aloneUnsupported = "the scenario needs an API server without other clients, because not everything that it installs or sends is in namespaces of its own: use target envtest, a kind cluster that the run creates, or --disposable if the API server is only for tests"

// openUnsupported is the reason why an API server that is used by several runs runs no scenario without isolation.
const openUnsupported = "isolation: none needs an API server that ends with the run: use target envtest, a kind cluster that the run creates, or --disposable if the API server is only for tests"
