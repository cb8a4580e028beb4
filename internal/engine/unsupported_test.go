package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
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

func TestOtherMinor(t *testing.T) {
	for _, c := range []struct {
		server, since, until string
		want                 bool
	}{
		{"v1.36.3", "1.36", "", false}, {"v1.35.4+k3s1", "1.36", "", true}, {"v2.0.0", "1.36", "", false}, {"v1.40.0-alpha.1", "1.36", "", false},
		{"v1.36.3", "", "", false}, {"unknown", "", "", false}, {"unknown", "1.36", "", true}, {"", "1.36", "", true},
		{"v1.36.3", "", "1.36", false}, {"v1.37.0-alpha.1", "", "1.36", true}, {"v1.37.2", "1.35", "1.36", true}, {"v1.35.4", "1.35", "1.36", false},
		{"v1.34.4", "1.35", "1.36", true}, {"unknown", "", "1.36", true}, {"v2.0.0", "", "1.36", true}, {"v1.36.3", "", "one", true},
	} {
		t.Run(c.since+" to "+c.until+" on "+c.server, func(t *testing.T) {
			s := scenario.Scenario{Spec: scenario.Spec{Since: c.since, Until: c.until}}
			if got := OtherMinor(s, c.server); (got != "") != c.want {
				t.Errorf("OtherMinor(since %q, until %q, server %s) = %q, want a reason: %t", c.since, c.until, c.server, got, c.want)
			}
		})
	}
}

// A scenario whose plugin is off is unsupported. If that is not known, it runs, and a
// failure is inconclusive.
func TestNeededPlugins(t *testing.T) {
	t.Parallel()
	unknown := errors.New("the metrics cannot be read")
	for name, one := range map[string]struct {
		needs       []string
		known       plugins
		unsupported bool
		onFailure   framework.Verdict
	}{
		"on":              {[]string{"plugin/Priority"}, plugins{enabled: []string{"Priority"}}, false, framework.Fail},
		"off":             {[]string{"plugin/Priority"}, plugins{enabled: []string{"LimitRanger"}}, true, ""},
		"one of two off":  {[]string{"plugin/LimitRanger", "plugin/Priority"}, plugins{enabled: []string{"LimitRanger"}}, true, ""},
		"not known":       {[]string{"plugin/Priority"}, plugins{unknown: unknown}, false, framework.Inconclusive},
		"on, as far":      {[]string{"plugin/Priority"}, plugins{enabled: []string{"Priority"}, unknown: unknown}, false, framework.Fail},
		"none needed":     {nil, plugins{unknown: unknown}, false, framework.Fail},
		"only capability": {[]string{framework.CapabilityAudit}, plugins{}, false, framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{Spec: scenario.Spec{Needs: one.needs}}
			reason := one.known.missing(s)
			if (reason != "") != one.unsupported || one.unsupported && !strings.Contains(reason, "Priority") {
				t.Errorf("got reason %q; want one: %t", reason, one.unsupported)
			}
			if one.unsupported {
				return
			}
			r := &groupRun{plugins: one.known, target: targettest.Target{}}
			if got := r.perhapsOff(s, report.Outcome{Verdict: framework.Fail}); got.Verdict != one.onFailure {
				t.Errorf("got %s %q for a failure; want %s", got.Verdict, got.Reason, one.onFailure)
			}
			if got := r.perhapsOff(s, report.Outcome{Verdict: framework.Pass}); got.Verdict != framework.Pass {
				t.Errorf("got %s for a pass; want it to stay", got.Verdict)
			}
		})
	}
}
