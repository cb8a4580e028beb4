package engine

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// A gate that the server no longer lists counts as on.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	lists := map[string]bool{"On": true, "Off": false}
	for name, one := range map[string]struct {
		gate, since string
		gates       map[string]bool
		want        string
	}{
		"on":                         {"On", "", lists, ""},
		"off":                        {"Off", "1.30", lists, "is disabled on the server"},
		"graduated":                  {"Gone", "1.30", lists, ""},
		"graduated in a later minor": {"Gone", "1.37", lists, "needs Kubernetes 1.37"},
		"not listed, no since":       {"Gone", "", lists, "which the server does not list"},
		"not known":                  {"Gone", "", nil, ""},
		"none":                       {"", "", lists, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{Spec: scenario.Spec{FeatureGate: one.gate, Since: one.since}}
			got := unsupported(s, framework.TargetInfo{ServerVersion: "v1.36.3", FeatureGates: one.gates})
			if one.want == "" && got != "" || !strings.Contains(got, one.want) {
				t.Errorf("got %q; want %q", got, one.want)
			}
		})
	}
}

// On a server whose version is not plausible no scenario passes.
func TestNoPassWithAnImplausibleVersion(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]framework.Verdict{"v1.36.3": framework.Pass, "v1.99.0": framework.Inconclusive, "": framework.Inconclusive} {
		t.Run(server, func(t *testing.T) {
			r := &run{options: Options{Progress: discard{}}, outcomes: map[string]report.Outcome{}, info: framework.TargetInfo{Kind: framework.TargetKubeconfig, ServerVersion: server}}
			s := scenario.Scenario{Metadata: scenario.Metadata{Name: "mine.a"}}
			r.finish(s, report.Outcome{Verdict: framework.Pass})
			if got := r.outcomes["mine.a"]; got.Verdict != want || (got.Reason == "") != (want == framework.Pass) {
				t.Errorf("version %q: got %s %q; want %s", server, got.Verdict, got.Reason, want)
			}
			r.finish(s, report.Outcome{Verdict: framework.Fail})
			if got := r.outcomes["mine.a"]; got.Verdict != framework.Fail {
				t.Errorf("version %q: got %s; want a failure to stay", server, got.Verdict)
			}
		})
	}
}

// A scenario that expects calls of plugins is unsupported by a target that does not record them.
func TestPluginsUnsupported(t *testing.T) {
	expects := scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{Then: &scenario.Expectation{Plugins: &scenario.Plugins{}}}}}}
	if reason := unsupported(expects, framework.TargetInfo{}); !strings.Contains(reason, "does not record") {
		t.Errorf("without recording: %q; want the reason", reason)
	}
	observed := framework.TargetInfo{Capabilities: []string{framework.CapabilityObservedPlugins}}
	if reason := unsupported(expects, observed); reason != "" {
		t.Errorf("with recording: %q; want none", reason)
	}
	if reason := unsupported(scenario.Scenario{}, framework.TargetInfo{}); reason != "" {
		t.Errorf("a scenario without plugins: %q; want none", reason)
	}
}
