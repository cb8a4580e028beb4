package execution

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// observedTarget records the calls of plugins.
type observedTarget struct {
	targettest.Target
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
			if test.fails != (f.NothingAboutAdmission() == "") || test.fails != strings.Contains(f.String(), "plugin Owner panicked: oh no") {
				t.Errorf("got %q, infrastructure %q", f, f.NothingAboutAdmission())
			}
			if timeline := c.evidence(f).Timeline; test.fails && (len(timeline) != 1 || timeline[0].Plugin != "Owner" || !timeline[0].Divergent) {
				t.Errorf("the timeline is %+v, want the call that panicked", timeline)
			}
		})
	}
}
