package expect

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// pluginTrace is: Labels, the webhook w, Labels again, and Quota, which refuses.
func pluginTrace() framework.Trace {
	plugin := func(phase framework.Phase, p framework.PluginCall) framework.Call {
		p.Handled, p.Operation, p.Resource = p.Name != "Idle", "CREATE", "pods"
		return framework.Call{Phase: phase, Observed: true, Plugin: &p}
	}
	return framework.Trace{
		plugin(framework.Mutating, framework.PluginCall{Name: "Idle"}),
		plugin(framework.Mutating, framework.PluginCall{Name: "Labels", Changed: []string{`metadata.labels["example.com/x"]`, "spec.list[0]"}}),
		{Webhook: "w", Phase: framework.Mutating, Observed: true},
		plugin(framework.Mutating, framework.PluginCall{Name: "Labels", Round: 1}),
		plugin(framework.Validating, framework.PluginCall{Name: "Odd", NotComparable: "no such version", Panicked: "broken"}),
		plugin(framework.Validating, framework.PluginCall{Name: "Large", Changed: []string{"data.a"}, MoreChanged: 7}),
		plugin(framework.Validating, framework.PluginCall{Name: "Quota", Refused: &framework.PluginRefusal{Code: 403, Reason: "Forbidden", Message: "too many"}}),
	}
}

func TestJudgePlugins(t *testing.T) {
	one, no := 1, false
	inOrder := func(calls ...scenario.PluginCall) *scenario.Plugins { return &scenario.Plugins{InOrder: calls} }
	labels := scenario.PluginCall{Plugin: "Labels"}
	tests := map[string]struct {
		expect *scenario.Plugins
		want   string // parts of the mismatch, with " | " between them; empty if it holds
		call   int    // the index of the call, or -1
	}{
		"not checked":         {nil, "", -1},
		"in order":            {inOrder(labels, labels, scenario.PluginCall{Plugin: "Quota"}), "", -1},
		"wrong order":         {inOrder(scenario.PluginCall{Plugin: "Quota"}, labels), `plugins[1]: expected a call of plugin Labels, after those that are expected before it`, -1},
		"called too seldom":   {inOrder(labels, labels, labels), "plugins[2]: expected a call of plugin Labels, after those", -1},
		"not called":          {inOrder(scenario.PluginCall{Plugin: "Nowhere"}), `plugins[0]: expected a call of plugin Nowhere | actual no matching call; all calls: ["Labels","Labels"`, -1},
		"not handled":         {inOrder(scenario.PluginCall{Plugin: "Idle"}), "plugins[0].handled: expected true, actual false", 0},
		"not handled, wanted": {inOrder(scenario.PluginCall{Plugin: "Idle", Handled: &no}), "", -1},
		"handled, unwanted":   {inOrder(scenario.PluginCall{Plugin: "Quota", Handled: &no}), "plugins[0].handled: expected false, actual true", 6},
		"phase":               {inOrder(scenario.PluginCall{Plugin: "Quota", Phase: "mutating"}), `plugins[0].phase: expected "mutating", actual "validating"`, 6},
		"round":               {inOrder(scenario.PluginCall{Plugin: "Labels", Round: &one}), "", -1},
		"no such round":       {inOrder(scenario.PluginCall{Plugin: "Quota", Round: &one}), "plugins[0].round: expected 1, actual 0", 6},
		"operation":           {inOrder(scenario.PluginCall{Plugin: "Quota", Operation: "UPDATE"}), "plugins[0].operation: | CREATE", 6},
		"resource":            {inOrder(scenario.PluginCall{Plugin: "Quota", Resource: "secrets"}), "plugins[0].resource: | pods", 6},
		"subresource":         {inOrder(scenario.PluginCall{Plugin: "Quota", Subresource: "scale"}), "plugins[0].subresource: | scale", 6},
		"changed":             {inOrder(scenario.PluginCall{Plugin: "Labels", Changed: []string{"spec.list", `metadata.labels["example.com/x"]`}}), "", -1},
		"changed, in part":    {inOrder(scenario.PluginCall{Plugin: "Labels", Phase: "mutating", Changed: []string{"metadata.labels"}}), `plugins[0].changed: expected ["metadata.labels"], actual | spec.list[0]`, 1},
		"changed, too much":   {inOrder(scenario.PluginCall{Plugin: "Labels", Changed: []string{"metadata", "spec", "status"}}), "plugins[0].changed: | status", 1},
		"changed, half name":  {inOrder(scenario.PluginCall{Plugin: "Labels", Changed: []string{"metadata", "spec.li"}}), "plugins[0].changed:", 1},
		"unchanged":           {inOrder(scenario.PluginCall{Plugin: "Labels", Changed: []string{}}), "", -1},
		"changed, unknown":    {inOrder(scenario.PluginCall{Plugin: "Odd", Changed: []string{}}), "plugins[0].changed: | unknown: no such version", 4},
		"changed, and more":   {inOrder(scenario.PluginCall{Plugin: "Large", Changed: []string{"data"}}), "plugins[0].changed: | and 7 more", 5},
		"refused":             {inOrder(scenario.PluginCall{Plugin: "Quota", Refused: true}), "", -1},
		"refused, unwanted":   {inOrder(scenario.PluginCall{Plugin: "Quota", Refused: false}), `plugins[0].refused: expected false, actual it refused the request: 403 Forbidden "too many"`, 6},
		"refused, in part":    {inOrder(scenario.PluginCall{Plugin: "Quota", Refused: map[string]any{"code": int64(403)}}), "", -1},
		"refused, otherwise":  {inOrder(scenario.PluginCall{Plugin: "Quota", Refused: map[string]any{"message": "no"}}), `plugins[0].refused.message: expected "no", actual "too many"`, 6},
		"not refused":         {inOrder(labels, scenario.PluginCall{Plugin: "Labels", Refused: map[string]any{"code": int64(403)}}), "plugins[1].refused: | did not refuse", 3},
		"not refused at all":  {inOrder(labels, scenario.PluginCall{Plugin: "Labels", Refused: true}), "plugins[1].refused: | did not refuse", 3},
		"none":                {&scenario.Plugins{InOrder: []scenario.PluginCall{}}, "plugins: expected no call of a plugin, actual calls of", 1},
		"excluded":            {&scenario.Plugins{Exclude: []string{"Quota"}}, "plugins.exclude: expected no call of Quota, actual a validating call of plugin Quota", 6},
		"not handled is none": {&scenario.Plugins{Exclude: []string{"Idle", "w"}}, "", -1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := framework.Result{Trace: pluginTrace()}
			result.Status.Code = 200
			found := Judge(&scenario.Expectation{Plugins: test.expect}, result)
			if test.want == "" {
				if len(found) > 0 {
					t.Errorf("got %v, want no mismatch", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("got %v, want one mismatch", found)
			}
			for _, part := range strings.Split(test.want, " | ") {
				if !strings.Contains(found[0].String(), part) {
					t.Errorf("got %q, want the part %q", found[0], part)
				}
			}
			if got := found[0].Call; (got == nil) != (test.call < 0) || got != nil && *got != test.call {
				t.Errorf("the mismatch is about call %v, want %d", got, test.call)
			}
		})
	}
}

// Expectations about webhooks do not see plugins, and name the call in the whole Trace.
func TestJudgeCallsBesidePlugins(t *testing.T) {
	result := framework.Result{Trace: pluginTrace()}
	result.Status.Code = 200
	calls := func(names ...string) *scenario.Expectation {
		expect := &scenario.Expectation{Calls: &scenario.Calls{InOrder: []scenario.Call{}}}
		for _, name := range names {
			expect.Calls.InOrder = append(expect.Calls.InOrder, scenario.Call{Webhook: name, Phase: "validating"})
		}
		return expect
	}
	expect := calls("w")
	expect.Calls.InOrder[0].Phase = ""
	if found := Judge(expect, result); len(found) > 0 {
		t.Errorf("got %v, want no mismatch", found)
	}
	found := Judge(calls("w"), result)
	if len(found) != 1 || found[0].Call == nil || *found[0].Call != 2 {
		t.Errorf("got %v, want one mismatch about call 2", found)
	}
}
