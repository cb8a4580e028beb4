package expect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/match"
)

type fields = map[string]any

// answered is the response to a create of an object, for which two webhooks were called, and a plugin
// between them.
func answered(object fields) framework.Result {
	got := framework.Result{Object: &unstructured.Unstructured{Object: object}}
	got.Status.Code = 201
	call := func(name string, data fields) framework.Call {
		return framework.Call{Webhook: name, Observed: true, Review: fields{"request": fields{
			"kind":   fields{"kind": object["kind"]},
			"object": fields{"kind": object["kind"], "data": data},
		}}}
	}
	got.Trace = framework.Trace{
		call("a", fields{}), {Plugin: &framework.PluginCall{Name: "P", Handled: true}}, call("b", fields{"x": "1"}),
	}
	return got
}

func TestObjects(t *testing.T) {
	got := answered(fields{"kind": "ConfigMap", "data": fields{"x": "1", "y": "2"}})
	expectation := &scenario.Expectation{
		Object: fields{"data": fields{"x": "3"}},
		Calls: &scenario.Calls{InOrder: []scenario.Call{
			{Webhook: "a", Request: fields{"object": fields{"kind": "ConfigMap"}}}, // it holds
			{Webhook: "b", Request: fields{"object": fields{"data": fields{"x": "4"}}}},
		}},
	}
	mismatches := expect.Judge(expectation, got)
	if len(mismatches) != 2 {
		t.Fatalf("mismatches: got %v, want 2", mismatches)
	}
	request := func(x string) fields {
		return fields{"kind": fields{"kind": "ConfigMap"}, "object": fields{"kind": "ConfigMap", "data": fields{"x": x}}}
	}
	want := []expect.Object{
		{Path: "object", Expected: fields{"kind": "ConfigMap", "data": fields{"x": "3", "y": "2"}}, Actual: fields{"kind": "ConfigMap", "data": fields{"x": "1", "y": "2"}}},
		{Path: "calls[1].request", Expected: request("4"), Actual: request("1")},
	}
	if diff := cmp.Diff(want, expect.Objects(expectation, got, mismatches)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, expectation := range map[string]*scenario.Expectation{
		"no expectation":  nil,
		"another webhook": {Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "c", Request: fields{"object": fields{}}}}}},
		"a call too many": {Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a"}, {Webhook: "b"}, {Webhook: "c", Request: fields{"name": "x"}}}}},
		"the code":        {Code: []int{200}},
	} {
		t.Run(name, func(t *testing.T) {
			if all := expect.Objects(expectation, got, expect.Judge(expectation, got)); len(all) != 0 {
				t.Errorf("got %v, want none", all)
			}
		})
	}
}

// No value of a Secret is shown, neither the actual nor the expected one.
func TestObjectsAreRedacted(t *testing.T) {
	got := answered(fields{"kind": "Secret", "data": fields{"same": "c2FtZQ==", "other": "b3RoZXI="}})
	data := fields{"same": "c2FtZQ==", "other": "ZXhwZWN0ZWQ=", "none": "bm9uZQ=="}
	expectation := &scenario.Expectation{
		Object: fields{"data": data},
		Calls:  &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a", Request: fields{"object": fields{"data": data}}}, {Webhook: "b"}}},
	}
	mismatches := expect.Judge(expectation, got)
	hidden := func(value string) any { return match.Hidden{Value: value} }
	want := []expect.Object{{
		Path:     "object",
		Expected: fields{"kind": "Secret", "data": fields{"same": hidden("c2FtZQ=="), "other": "(another value, redacted)", "none": hidden("bm9uZQ==")}},
		Actual:   fields{"kind": "Secret", "data": fields{"same": hidden("c2FtZQ=="), "other": hidden("b3RoZXI=")}},
	}}
	if diff := cmp.Diff(want, expect.Objects(expectation, got, mismatches)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
