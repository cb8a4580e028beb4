package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
)

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

// observedTarget records the calls of plugins.
type observedTarget struct {
	fakeTarget
	capabilities []string
	event        *framework.Audit
	wanted       string // the audit ID of the event
}

func (o observedTarget) Info() framework.TargetInfo {
	return framework.TargetInfo{Capabilities: o.capabilities}
}

func (o observedTarget) Optional() target.Optional {
	return target.Optional{Audit: func(_ context.Context, id string) (*framework.Audit, error) {
		if id != o.wanted {
			return nil, fmt.Errorf("no event %s", id)
		}
		return o.event, nil
	}}
}

// silentSandbox never answers.
type silentSandbox struct{ fakeSandbox }

func (*silentSandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	return framework.Result{AuditID: "lost", Started: time.Unix(1, 0)}, fmt.Errorf("send: %w", framework.ErrNoResponse)
}

// A request without response is a failure if a plugin panicked, otherwise it says nothing.
func TestPanickedPlugin(t *testing.T) {
	call := func(panicked string) *framework.Audit {
		return &framework.Audit{Plugins: framework.Trace{{Phase: framework.Mutating, Observed: true, Started: time.Unix(2, 0), Plugin: &framework.PluginCall{Name: "Owner", Handled: true, Panicked: panicked}}}}
	}
	observes := []string{framework.CapabilityObservedPlugins}
	for name, test := range map[string]struct {
		target observedTarget
		fails  bool
	}{
		"panicked":     {observedTarget{capabilities: observes, event: call("oh no"), wanted: "lost"}, true},
		"no panic":     {observedTarget{capabilities: observes, event: call(""), wanted: "lost"}, false},
		"no event":     {observedTarget{capabilities: observes, event: call("oh no"), wanted: "another"}, false},
		"not recorded": {observedTarget{event: call("oh no"), wanted: "lost"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := caseOn(&silentSandbox{})
			c.target = test.target
			f := c.step(t.Context(), scenario.Step{Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}})
			if f == nil {
				t.Fatal("the step held")
			}
			if test.fails != (f.infrastructure() == "") || test.fails != strings.Contains(f.String(), "plugin Owner panicked: oh no") {
				t.Errorf("got %q, infrastructure %q", f, f.infrastructure())
			}
			if timeline := f.evidence(c, 1, 1).Timeline; test.fails && (len(timeline) != 1 || timeline[0].Plugin != "Owner" || !timeline[0].Divergent) {
				t.Errorf("the timeline is %+v, want the call that panicked", timeline)
			}
		})
	}
}

// The timeline has plugins and webhooks in one order, and marks the call that was judged.
func TestTimelineWithPlugins(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	f := &failure{result: framework.Result{Started: at(1), Trace: framework.Trace{
		{Webhook: "a", Phase: framework.Mutating, Observed: true, Started: at(4), Finished: at(5)},
		{Webhook: "a", Phase: framework.Mutating, Observed: true, Started: at(8), Finished: at(9)},
	}}}
	plugin := func(second int64, p framework.PluginCall) framework.Call {
		return framework.Call{Plugin: &p, Phase: framework.Mutating, Observed: true, Started: at(second), Finished: at(second)}
	}
	event := &framework.Audit{Plugins: framework.Trace{
		plugin(2, framework.PluginCall{Name: "First", Handled: true, Operation: "CREATE", Resource: "pods", Subresource: "binding", Namespace: "ns", Object: "x", Changed: []string{"spec.a", "spec.b"}, MoreChanged: 3}),
		plugin(3, framework.PluginCall{Name: "MutatingAdmissionWebhook", Handled: true, NotComparable: "no version"}),
		plugin(6, framework.PluginCall{Name: "First", Round: 1, Handled: true, Refused: &framework.PluginRefusal{Code: 403, Reason: "Forbidden", Message: "no"}}),
		plugin(7, framework.PluginCall{Name: "Idle"}),
		plugin(7, framework.PluginCall{Name: "Nothing", Handled: true}),
	}}
	var got []string
	for _, entry := range f.timeline(event, 1, false) {
		text := fmt.Sprintf("%d %s%s %d: %s", int(entry.OffsetMillis/1000), entry.Plugin, entry.Webhook, entry.Round, entry.Summary)
		if entry.Divergent {
			text = "> " + text
		}
		if entry.Idle {
			text += " (idle)"
		}
		got = append(got, text)
	}
	want := []string{
		"1 First 0: CREATE pods/binding ns/x: changed spec.a, spec.b and 3 more after 0s",
		"2 MutatingAdmissionWebhook 0:   : it is not known what it changed: no version after 0s",
		"3 a 0:  after 1s",
		"5 First 1:   : refused, 403 Forbidden no after 0s",
		"6 Idle 0:   : not called, because it does not handle the operation (idle)",
		"6 Nothing 0:   : nothing after 0s (idle)",
		"> 7 a 1:  after 1s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
