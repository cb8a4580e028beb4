package expect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The timeline has the audit annotations of policies too, whose keys begin with the policy.
func TestAuditEntries(t *testing.T) {
	t.Parallel()
	event := &framework.Audit{Annotations: map[string]string{
		"at-abc-policy/replicas":                                "3",
		"validation.policy.admission.k8s.io/validation_failure": "[]",
		"pod-security.kubernetes.io/enforce-policy":             "privileged:latest",
		"authorization.k8s.io/decision":                         "allow",
		"apiserver.latency.k8s.io/total":                        "1ms",
		"k8s.io/deprecated":                                     "true",
	}}
	var got []string
	for _, entry := range auditEntries(event) {
		got = append(got, entry.Summary)
	}
	want := []string{
		"at-abc-policy/replicas = 3",
		"pod-security.kubernetes.io/enforce-policy = privileged:latest",
		"validation.policy.admission.k8s.io/validation_failure = []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

// The timeline has plugins and webhooks in one order, and marks the call that was judged.
func TestTimelineWithPlugins(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	result := framework.Result{Started: at(1), Trace: framework.Trace{
		{Webhook: "a", Phase: framework.Mutating, Observed: true, Started: at(4), Finished: at(5)},
		{Webhook: "a", Phase: framework.Mutating, Observed: true, Started: at(8), Finished: at(9)},
	}}
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
	for _, entry := range timeline(result.Trace.With(event.Plugins), result.Started, &result.Trace[1]) {
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
		"2 MutatingAdmissionWebhook 0:   : the change is unknown: no version after 0s",
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

// The operations of a patch are in the report, at most operationLimit, without the values for a Secret.
func TestPatchOf(t *testing.T) {
	call := func(kind string, patch ...any) framework.Call {
		return framework.Call{
			Review:   map[string]any{"request": map[string]any{"kind": map[string]any{"kind": kind}}},
			Response: map[string]any{"patch": patch},
		}
	}
	operations := []any{
		map[string]any{"op": "add", "path": "/data/a", "value": "<b>"},
		map[string]any{"op": "move", "path": "/data/b", "from": "/data/c"},
		map[string]any{"op": "remove", "path": "/data/d"},
		map[string]any{"op": 7}, "no operation",
	}
	want := []report.PatchOperation{
		{Op: "add", Path: "/data/a", Value: `"<b>"`}, {Op: "move", Path: "/data/b", Value: "from /data/c"}, {Op: "remove", Path: "/data/d"}, {Op: "7"}, {},
	}
	got, more := patchOf(call("ConfigMap", operations...))
	if diff := cmp.Diff(want, got); diff != "" || more != 0 {
		t.Errorf("%d more, -want +got:\n%s", more, diff)
	}
	got, _ = patchOf(call("Secret", operations...))
	if got[0].Value != "(redacted)" {
		t.Errorf("for a Secret: got %+v", got[0])
	}
	many := make([]any, operationLimit+3)
	if got, more = patchOf(call("ConfigMap", many...)); len(got) != operationLimit || more != 3 {
		t.Errorf("got %d operations and %d more, want %d and 3", len(got), more, operationLimit)
	}
	if got, _ = patchOf(framework.Call{}); got != nil {
		t.Errorf("without a response: got %v", got)
	}
}

// Texts that evidence changes or cuts have no tokens either.
func TestSecretsInTexts(t *testing.T) {
	secret := "eyJ" + strings.Repeat("token", 100)
	options := Options{}
	errs := errors.New("cannot read it: " + secret)
	texts := []string{Step{}.decisions([]reach.Finding{{Text: "it says " + secret}}, nil, options)[0].Text, Step{}.decisions(nil, errs, options)[0].Text}
	patch := framework.Call{Response: map[string]any{"patch": []any{map[string]any{"op": secret, "path": "/" + secret, "value": secret}}}}
	operations, _ := patchOf(patch)
	texts = append(texts, operations[0].Op, operations[0].Path, operations[0].Value)
	for _, text := range texts {
		if strings.Contains(text, "token") || !strings.Contains(text, match.Redacted) {
			t.Errorf("got %q", text)
		}
	}
}
