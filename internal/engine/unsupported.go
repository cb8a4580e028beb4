package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// unsupported returns why the target cannot run the scenario, or "".
func unsupported(s scenario.Scenario, info framework.TargetInfo) string {
	if reason := otherMinor(s, info.ServerVersion); reason != "" {
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

// otherMinor returns why a server of a version ("v1.36.3") is too old or too new for the scenario, or
// "".
func otherMinor(s scenario.Scenario, server string) string {
	since, until := s.Spec.Since, s.Spec.Until
	needed := "needs Kubernetes " + since
	switch {
	case since == "" && until == "":
		return ""
	case since == "":
		needed = "needs Kubernetes " + until + " or older"
	case until != "" && until != since:
		needed += " to " + until
	}
	have, err := version.ParseGeneric(server)
	if err != nil {
		return fmt.Sprintf("%s; the version of the server is not known: %v", needed, err)
	}
	minor := version.MajorMinor(have.Major(), have.Minor()) // 1.36.3 is not newer than 1.36
	toSince, sinceErr := minor.Compare(cmp.Or(since, minor.String()))
	toUntil, untilErr := minor.Compare(cmp.Or(until, minor.String()))
	switch err := errors.Join(sinceErr, untilErr); {
	case err != nil:
		return fmt.Sprintf("%s, which is not a version: %v", needed, err)
	case toSince < 0 || toUntil > 0:
		return fmt.Sprintf("%s, the server is %s", needed, server)
	default:
		return ""
	}
}

// openUnsupported is the reason why an API server with other clients runs no scenario without
// isolation.
const openUnsupported = "isolation: none needs an API server that ends with the run: use target envtest, or a kind cluster that the run creates"
