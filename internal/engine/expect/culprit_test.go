package expect

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// TestCauses: the evidence names what made the expectation fail, and nothing if nothing did.
func TestCauses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		sent, final string
		expect      string
		trace       framework.Trace
		status      metav1.Status
		marked      string
		want        []string
	}{
		{
			name: "an old type drops a field", sent: "{spec: {c: [{n: a, r: Always}]}}", final: "{spec: {c: [{n: a, e: 1}]}}", expect: "{spec: {c: [{r: Always}]}}",
			trace:  framework.Trace{call("first", "{spec: {c: [{n: a, r: Always}]}}", `[{op: add, path: /meta, value: 1}]`), call("old", "{meta: 1, spec: {c: [{n: a, r: Always}]}}", `[{op: replace, path: /spec/c, value: [{n: a, e: 1}]}]`), call("last", "{spec: {c: [{n: a, e: 1}]}}", "[]")},
			marked: "old", want: []string{`webhook "old": its patch (replace /spec/c) changed object.spec.c[0].r`},
		},
		{
			name: "the last one that makes it wrong", sent: "{a: 1}", final: "{a: 3}", expect: "{a: 1}",
			trace:  framework.Trace{call("one", "{a: 1}", `[{op: replace, path: /a, value: 2}]`), call("two", "{a: 2}", `[{op: replace, path: /a, value: 1}]`), call("three", "{a: 1}", `[{op: replace, path: /a, value: 3}]`)},
			marked: "three", want: []string{`webhook "three": its patch (replace /a) changed object.a`},
		},
		{
			name: "never right, and set by a webhook", sent: "{}", final: "{a: 2}", expect: "{a: 3}",
			trace:  framework.Trace{call("one", "{}", `[{op: add, path: /a, value: 2}]`)},
			marked: "one", want: []string{`webhook "one": its patch (add /a) changed object.a`},
		},
		{
			name: "an item without a field", sent: "{c: [{n: a}]}", final: "{c: [{n: a, e: 1}, {n: b}]}", expect: "{c: [{e: 1}, {e: 1}]}",
			trace:  framework.Trace{call("token", "{c: [{n: a}]}", `[{op: replace, path: /c, value: [{n: a, e: 1}]}]`), call("mesh", "{c: [{n: a, e: 1}]}", `[{op: add, path: /c/-, value: {n: b}}]`)},
			marked: "mesh", want: []string{`webhook "mesh": its patch (add /c/-) changed object.c[1].e`},
		},
		{
			name: "no call: the client did not send it", sent: "{m: {}}", final: "{m: {x: 1}}", expect: "{m: {y: 1}}",
			trace: framework.Trace{call("one", "{m: {}}", `[{op: add, path: /m/x, value: 1}]`)},
		},
		{
			name: "a plugin before the webhooks", sent: "{a: 1}", final: "{a: 2}", expect: "{a: 1}",
			trace:  framework.Trace{plugin("Changer", "a"), call("one", "{a: 2}", `[]`)},
			marked: "Changer", want: []string{`plugin "Changer" changed object.a`},
		},
		{
			name: "a policy", sent: "{a: 1}", final: "{a: 2}", expect: "{a: 1}",
			trace:  framework.Trace{plugin("MutatingAdmissionPolicy", "a")},
			marked: "MutatingAdmissionPolicy", want: []string{`plugin "MutatingAdmissionPolicy" changed object.a`},
		},
		{
			name: "not observed", sent: "{a: 1}", final: "{a: 2}", expect: "{a: 1}",
			trace: framework.Trace{call("one", "{a: 1}", `[]`)},
		},
		{
			name: "a patch that cannot be applied", sent: "{}", trace: framework.Trace{call("one", "{}", `[{op: add, path: /a/0, value: 2}]`)},
			status: metav1.Status{Code: 500, Reason: "InternalError", Message: `Internal error occurred: add operation does not apply: doc is missing path: "/a/0": missing value`},
			marked: "one", want: []string{`webhook "one": its patch cannot be applied: add operation does not apply: doc is missing path: "/a/0": missing value`},
		},
		{
			name: "a patch of the wrong type", sent: "{}", trace: framework.Trace{call("one", "{}", `[{op: add, path: /a, value: 2}]`)},
			status: metav1.Status{Code: 500, Reason: "InternalError", Message: "Internal error occurred: json: cannot unmarshal number into Go struct field X.a of type string"},
			marked: "one", want: []string{`webhook "one": its patch cannot be applied: json: cannot unmarshal number into Go struct field X.a of type string`},
		},
		{
			name: "a patch that makes it invalid", sent: "{spec: {c: [{i: x}]}}", trace: framework.Trace{call("one", "{spec: {c: [{i: x}]}}", `[{op: remove, path: "/spec/c/0/i"}]`)},
			status: metav1.Status{Code: 422, Reason: "Invalid", Message: `X "a" is invalid: spec.c[0].i: Required value`, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.c[0].i"}}}},
			marked: "one", want: []string{`webhook "one": its patch (remove /spec/c/0/i) changed object.spec.c[0].i`},
		},
		{
			name: "a plugin that refuses", sent: "{}", trace: framework.Trace{refusing("Strict")},
			status: metav1.Status{Code: 403, Reason: "Forbidden", Message: `x "a" is forbidden: no`},
			marked: "Strict", want: []string{`plugin "Strict" refused the request`},
		},
		{
			name: "a plugin that is not observed", sent: "{}",
			status: metav1.Status{Code: 403, Reason: "Forbidden", Message: `x "a" is forbidden: no`},
		},
		{
			name: "a call that failed", sent: "{}", trace: framework.Trace{call("one.example.com", "{}", `[]`), call("two.example.com", "{}", `[]`)},
			status: metav1.Status{Code: 500, Reason: "InternalError", Message: `Internal error occurred: failed calling webhook "one.example.com": EOF`},
			marked: "one.example.com", want: []string{`the call of webhook "one.example.com" failed`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			step := Step{Number: 1, Request: &framework.Request{Verb: framework.VerbCreate, Object: object(test.sent)}, Result: framework.Result{Status: test.status, Started: time.Unix(0, 0), Finished: time.Unix(100, 0)}}
			for i := range test.trace {
				test.trace[i].Started, test.trace[i].Finished = time.Unix(int64(2*i+1), 0), time.Unix(int64(2*i+2), 0)
			}
			step.Result.Trace, step.Mismatches = test.trace, []Mismatch{{Path: "allowed"}}
			if test.final != "" {
				step.Result.Status.Code, step.Result.Object = 201, object(test.final)
				step.Expect = &scenario.Expectation{Object: object(test.expect).Object}
				step.Mismatches = Judge(step.Expect, step.Result)
			}
			got := Of(step, Options{Explain: func(context.Context, framework.Request, framework.Result) ([]reach.Finding, error) { return nil, nil }})
			if !slices.Equal(got.Causes, test.want) {
				t.Errorf("got %q, want %q", got.Causes, test.want)
			}
			marked := ""
			for _, entry := range got.Timeline {
				if entry.Divergent {
					marked += entry.Webhook + entry.Plugin
				}
			}
			if marked != test.marked {
				t.Errorf("marked %q, want %q", marked, test.marked)
			}
		})
	}
}

func object(text string) *unstructured.Unstructured {
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// call is the call of a mutating webhook that got an object and answered a patch.
func call(webhook, got, patch string) framework.Call {
	var operations []any
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(patch)), &operations); err != nil {
		panic(err)
	}
	return framework.Call{
		Webhook: webhook, Phase: framework.Mutating, Observed: true,
		Review:   map[string]any{"request": map[string]any{"operation": "CREATE", "object": object(got).Object}},
		Response: map[string]any{"allowed": true, "patch": operations},
	}
}

func plugin(name string, changed ...string) framework.Call {
	return framework.Call{Phase: framework.Mutating, Observed: true, Plugin: &framework.PluginCall{Name: name, Handled: true, Changed: changed}}
}

func refusing(name string) framework.Call {
	return framework.Call{Phase: framework.Validating, Observed: true, Plugin: &framework.PluginCall{Name: name, Handled: true, Refused: &framework.PluginRefusal{Code: 403}}}
}
