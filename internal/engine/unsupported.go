package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
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
		return "the scenario expects calls of admission plugins, but this API server does not record them: use target envtest with a kube-apiserver that admissiontest built, without --no-build"
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

// OtherMinor returns why a server of a version ("v1.36.3") is too old or too new for the scenario, or
// "".
func OtherMinor(s scenario.Scenario, server string) string {
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

// plugins is what is known of the admission plugins of an API server. The zero value is for
// scenarios that need none.
type plugins struct {
	enabled []string
	// unknown is why a plugin that is not in enabled can be enabled. Nil: it is not.
	unknown error
}

// findPlugins finds the plugins of the target, if a scenario of the group needs one, and on the default
// server for the report, unless it has other clients.
func (r *groupRun) findPlugins(ctx context.Context, g group) {
	needed := slices.ContainsFunc(g.scenarios, func(s scenario.Scenario) bool { return len(neededPlugins(s)) > 0 })
	if !needed && (g.profile != nil || r.target.Optional().Confined != nil) {
		return
	}
	find := r.target.Optional().Plugins
	if r.foreign != nil {
		r.plugins.unknown = r.foreign
		return
	}
	if find == nil {
		r.plugins.unknown = errors.New("this target does not report which admission plugins are enabled")
		return
	}
	r.plugins.enabled, r.plugins.unknown = find(ctx)
	if g.profile == nil && r.plugins.unknown == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.enabledPlugins = r.plugins.enabled
	}
}

// neededPlugins returns the names of the plugins that a scenario needs.
func neededPlugins(s scenario.Scenario) []string {
	var names []string
	for _, need := range s.Spec.Needs {
		if name, ok := strings.CutPrefix(need, framework.PluginPrefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// missing returns why the scenario cannot run, or "": a plugin is known to be off.
func (p plugins) missing(s scenario.Scenario) string {
	if name := p.notSeen(s); name != "" && p.unknown == nil {
		return fmt.Sprintf("needs admission plugin %s, which is not enabled on the server", name)
	}
	return ""
}

// notSeen returns the first plugin of a scenario that is not known to be enabled, or "".
func (p plugins) notSeen(s scenario.Scenario) string {
	for _, name := range neededPlugins(s) {
		if !slices.Contains(p.enabled, name) {
			return name
		}
	}
	return ""
}

// isolate reports whether scenarios run one at a time. It is an error if they would disturb other clients of the API server.
func (r *groupRun) isolate() (bool, error) {
	ask := r.target.Optional().Lacks
	if ask == nil {
		return r.options.Parallel == 1, nil
	}
	why, touches := ask()[target.Narrowing]
	if touches && r.target.Optional().Confined != nil {
		return false, fmt.Errorf("run scenarios on an API server with other clients: their requests would be touched: %s; use an API server that is only for tests, such as one of \"admissiontest serve\"", why)
	}
	return r.options.Parallel == 1 || touches, nil
}

// lacking returns why the target cannot run a case because of what the API server is known to lack, or "".
func (r *groupRun) lacking(c *execution.Case) string {
	ask := r.target.Optional().Lacks
	if ask == nil {
		return ""
	}
	lacks := ask()
	if len(lacks) == 0 {
		return ""
	}
	_, sent := c.Requests()
	for _, feature := range featuresOf(c.Scenario, sent) {
		if why, lacking := lacks[feature]; lacking {
			return fmt.Sprintf("needs %s, which this API server lacks: %s", feature, why)
		}
	}
	return ""
}

// featuresOf returns the features that a scenario with some requests needs.
func featuresOf(s scenario.Scenario, sent []framework.Request) []target.Feature {
	var needs []target.Feature
	for _, request := range sent {
		if request.User != nil {
			needs = append(needs, target.Impersonation)
		}
		if request.Verb != framework.VerbGet && request.Verb != framework.VerbList {
			needs = append(needs, target.AdmissionOf(request.Kind.GroupKind()))
		}
	}
	_ = execution.EachStep(s.Spec, func(_ string, step scenario.Step) error { // it returns no error
		if step.Then != nil && step.Then.Warnings != nil {
			needs = append(needs, target.Warnings)
		}
		return nil
	})
	slices.Sort(needs)
	return slices.Compact(needs)
}

// perhapsOff returns an inconclusive outcome for a failure that can have the cause that a plugin or a feature gate is off, if
// it is not known which are on.
func (r *groupRun) perhapsOff(s scenario.Scenario, outcome report.Outcome) report.Outcome {
	plugin, gate := r.plugins.notSeen(s), s.Spec.FeatureGate
	switch {
	case outcome.Verdict != framework.Fail:
		return outcome
	case plugin != "":
		outcome.Cause = fmt.Sprintf("it is not known which admission plugins are enabled: %v", r.plugins.unknown)
		outcome.Reason = fmt.Sprintf("admission plugin %s is possibly not enabled: %v; %s", plugin, r.plugins.unknown, outcome.Reason)
	case gate != "" && r.target.Info().FeatureGates == nil:
		outcome.Cause = "it is not known which feature gates are on: the API server shows no metrics"
		outcome.Reason = fmt.Sprintf("feature gate %s is possibly off: the API server shows no metrics; %s", gate, outcome.Reason)
	default:
		return outcome
	}
	outcome.Verdict = framework.Inconclusive
	return outcome
}
