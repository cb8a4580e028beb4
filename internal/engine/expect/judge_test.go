package expect_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/golden"
)

type (
	m = map[string]any
	l = []any
)

type example struct {
	name   string
	expect *scenario.Expectation
	got    framework.Result
	holds  bool
}

func at(milliseconds int) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(milliseconds) * time.Millisecond)
}

// call is an observed call from one moment to another.
func call(name string, from, to int) framework.Call {
	return framework.Call{
		Webhook: name, Phase: framework.Mutating, Observed: true, Started: at(from), Finished: at(to),
		Review: m{"apiVersion": "admission.k8s.io/v1", "request": m{
			"uid": name + "-" + fmt.Sprint(from), "operation": "CREATE", "dryRun": false,
			"object": m{"metadata": m{"labels": m{"x": "1", "example.com/y": "2"}}},
		}},
		Header: http.Header{"Content-Type": {"application/json"}}, Query: url.Values{"timeout": {"10s", "5s"}},
		Method: "POST", Path: "/hook/a", Proto: "HTTP/2.0",
		ServerName: "a.ns.svc", Protocols: []string{"http/1.1"}, ClientCertificate: "CN=caller", Connection: "127.0.0.1:1",
	}
}

func inferred(name string) framework.Call {
	return framework.Call{Webhook: name, Phase: framework.Validating}
}

func ok(calls ...framework.Call) framework.Result {
	return framework.Result{
		Status: metav1.Status{Status: "Success", Code: 201}, Trace: calls,
		Object:  &unstructured.Unstructured{Object: m{"metadata": m{"name": "subject", "uid": "u"}, "data": m{"second": "seen"}}},
		Started: at(0), Finished: at(100),
	}
}

func refused() framework.Result {
	return framework.Result{Status: metav1.Status{
		Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "a" denied the request: no`,
		Details: &metav1.StatusDetails{Kind: "configmaps", Causes: []metav1.StatusCause{{Field: "data"}}},
	}}
}

func withAudit(audit framework.Audit) framework.Result {
	result := ok()
	result.Audit = &audit
	return result
}

func withWarnings(texts ...string) framework.Result {
	result := ok()
	result.Warnings = texts
	return result
}

func answerExamples() []example {
	yes, no := true, false
	type x = scenario.Expectation
	return []example{
		{"nil holds of success", nil, ok(), true},
		{"nil fails of a refusal", nil, refused(), false},
		{"nothing expected fails of a refusal", &x{Message: []string{"denied"}}, refused(), false},
		{"allowed", &x{Allowed: &yes}, ok(), true},
		{"allowed fails", &x{Allowed: &yes}, refused(), false},
		{"not allowed", &x{Allowed: &no}, refused(), true},
		{"not allowed fails", &x{Allowed: &no}, ok(), false},
		{"not allowed fails without an answer", &x{Allowed: &no}, framework.Result{}, false},
		{"code", &x{Code: []int{200, 201}}, ok(), true},
		{"code of a refusal says nothing of allowed", &x{Code: []int{403}}, refused(), true},
		{"code fails", &x{Code: []int{200, 201}}, refused(), false},
		{"code and allowed fail", &x{Code: []int{200}, Allowed: &yes}, refused(), false},
		{"reason", &x{Reason: []string{"Invalid", "Forbidden"}}, refused(), true},
		{"reason fails", &x{Reason: []string{"Invalid"}}, refused(), false},
		{"reason fails of success", &x{Reason: []string{"Invalid", "Forbidden"}}, ok(), false},
		{"message", &x{Code: []int{403}, Message: []string{"denied", `webhook "a"`}}, refused(), true},
		{"message fails twice", &x{Code: []int{403}, Message: []string{"denied", "yes", "<maybe>"}}, refused(), false},
		{"details", &x{Code: []int{403}, Details: m{"causes": l{m{"field": "data"}}}}, refused(), true},
		{"details fail", &x{Code: []int{403}, Details: m{"causes": l{m{"field": "x"}}, "kind": "pods"}}, refused(), false},
		{"details fail where there are none", &x{Details: m{"kind": "pods"}}, ok(), false},
		{"no details", &x{Details: m{"$absent": true}}, ok(), true},
		{"object", &x{Object: m{"data": m{"second": "seen", "third": m{"$absent": true}}}}, ok(), true},
		{"object fails", &x{Object: m{"metadata": m{"uid": m{"$absent": true}}, "data": m{"second": "x", "third": "seen"}}}, ok(), false},
		{"object fails where there is none", &x{Code: []int{403}, Object: m{"data": m{"x": m{"$absent": true}}}}, refused(), false},
		{"no object", &x{Code: []int{403}, Object: m{"$absent": true}}, refused(), true},
		{"no object fails", &x{Object: m{"$absent": true}}, ok(), false},
		{"object malformed", &x{Object: m{"a": m{"$absnt": true}}}, ok(), false},
		{"warnings", &x{Warnings: l{"one", m{"$startsWith": "tw"}}}, withWarnings("one", "two"), true},
		{"warnings fail in order", &x{Warnings: l{"two", "one"}}, withWarnings("one", "two"), false},
		{"warnings fail of one more", &x{Warnings: l{"one"}}, withWarnings("one", "two"), false},
		{"no warnings", &x{Warnings: l{}}, ok(), true},
		{"no warnings fails", &x{Warnings: []string{}}, withWarnings("one"), false},
		{"warnings contain", &x{Warnings: m{"$contains": m{"$contains": "w"}}}, withWarnings("one", "two"), true},
		{"warnings contain fails of none", &x{Warnings: m{"$contains": "two"}}, ok(), false},
		{"warnings of a wrong type", &x{Warnings: "one"}, withWarnings("one"), false},
		{"audit", &x{Audit: m{"level": "Request", "annotations": m{"a": "1"}, "requestObject": m{"b": 1}, "responseObject": m{"c": 1}}}, withAudit(framework.Audit{Level: "Request", Annotations: map[string]string{"a": "1", "z": "2"}, RequestObject: m{"b": 1}, ResponseObject: m{"c": 1}}), true},
		{"audit fails everywhere", &x{Audit: m{"level": "Request", "annotations": m{"x.example.com/a": "1"}, "requestObject": m{"b": 1}, "responseObject": m{"c": 1}}}, withAudit(framework.Audit{Level: "Metadata", Annotations: map[string]string{"z": "2"}, RequestObject: m{"b": 2}}), false},
		{"audit without annotations", &x{Audit: m{"annotations": m{"a": m{"$absent": true}}, "requestObject": nil}}, withAudit(framework.Audit{}), true},
		{"audit fails unseen", &x{Audit: m{"annotations": m{"a": m{"$absent": true}}}}, ok(), false},
		{"several fail", &x{Allowed: &yes, Reason: []string{"Invalid"}, Object: m{"a": 1}, Warnings: l{"w"}, Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a"}}}}, refused(), false},
	}
}

func callExamples() []example {
	type x = scenario.Expectation
	abc := ok(call("a", 0, 10), call("b", 10, 20), call("c", 20, 30))
	validating := call("a", 30, 40)
	validating.Phase = framework.Validating
	aa := ok(call("a", 0, 10), validating)
	names := func(names ...string) []scenario.Call {
		calls := []scenario.Call{}
		for _, name := range names {
			calls = append(calls, scenario.Call{Webhook: name})
		}
		return calls
	}
	inOrder := func(calls ...scenario.Call) *x { return &x{Calls: &scenario.Calls{InOrder: calls}} }
	anyOrder := func(calls ...scenario.Call) *x { return &x{Calls: &scenario.Calls{AnyOrder: calls}} }
	include := func(calls ...scenario.Call) *x { return &x{Calls: &scenario.Calls{Include: calls}} }
	withRequest := func(name string, request m) scenario.Call { return scenario.Call{Webhook: name, Request: request} }
	return []example{
		{"in order", inOrder(names("a", "b", "c")...), abc, true},
		{"in order lacks two", inOrder(names("a", "b", "c", "d", "e")...), abc, false},
		{"in order has two more", inOrder(names("a")...), abc, false},
		{"in order has another", inOrder(names("a", "c", "b")...), abc, false},
		{"in order, a field differs before another call", inOrder(withRequest("a", m{"operation": "UPDATE"}), scenario.Call{Webhook: "c"}), abc, false},
		{"none", inOrder(names()...), ok(), true},
		{"none fails", &x{Calls: &scenario.Calls{InOrder: []scenario.Call{}}}, ok(call("a", 0, 1)), false},
		{"the zero Calls expect none", &x{Calls: &scenario.Calls{}}, ok(), true},
		{"the zero Calls fail", &x{Calls: &scenario.Calls{}}, ok(call("a", 0, 1)), false},
		{"any order", anyOrder(names("c", "a", "b")...), abc, true},
		{"any order, the only assignment", anyOrder(scenario.Call{Webhook: "a"}, scenario.Call{Webhook: "a", Phase: "mutating"}), aa, true},
		{"any order lacks one", anyOrder(names("c", "a", "b", "a")...), abc, false},
		{"any order has one more", anyOrder(names("c", "a")...), abc, false},
		{"any order, a field differs", anyOrder(withRequest("b", m{"operation": "CREATE"}), withRequest("a", m{"operation": "UPDATE", "dryRun": true}), scenario.Call{Webhook: "c"}), abc, false},
		{"any order takes the nearest", anyOrder(scenario.Call{Webhook: "a", Phase: "validating", Path: "/x", Method: "GET"}, scenario.Call{Webhook: "a", Phase: "mutating", Path: "/x"}), aa, false},
		{"any order expects none", anyOrder(names()...), ok(), true},
		{"any order expects none and fails", &x{Calls: &scenario.Calls{AnyOrder: []scenario.Call{}}}, ok(call("a", 0, 1)), false},
		{"include", include(names("c", "a")...), abc, true},
		{"include twice", include(names("a", "a")...), aa, true},
		{"include twice fails", include(names("a", "a")...), abc, false},
		{"include fails in a field", include(withRequest("b", m{"dryRun": true})), abc, false},
		{"exclude", &x{Calls: &scenario.Calls{Exclude: []string{"d"}}}, abc, true},
		{"exclude fails twice", &x{Calls: &scenario.Calls{Exclude: []string{"a", "d"}}}, aa, false},
		{"include and exclude", &x{Calls: &scenario.Calls{Include: names("a"), Exclude: []string{"b"}}}, abc, false},
	}
}

// fieldExamples are two expectations for each field of a call: one that holds and one that fails.
func fieldExamples() []example {
	one := ok(call("a", 0, 10))
	fields := []struct {
		name         string
		holds, fails scenario.Call
	}{
		{"phase", scenario.Call{Phase: "mutating"}, scenario.Call{Phase: "validating"}},
		{"review", scenario.Call{Review: m{"apiVersion": "admission.k8s.io/v1"}}, scenario.Call{Review: m{"apiVersion": "admission.k8s.io/v1beta1", "request": m{"operation": "UPDATE"}}}},
		{"request", scenario.Call{Request: m{"object": m{"metadata": m{"labels": m{"example.com/y": "2"}}}, "oldObject": nil}}, scenario.Call{Request: m{"object": m{"metadata": m{"labels": m{"example.com/y": "3", "x": m{"$absent": true}}}}}}},
		{"query", scenario.Call{Query: m{"$exact": m{"timeout": "10s"}}}, scenario.Call{Query: m{"timeout": "5s", "x": m{"$nonEmpty": true}}}},
		{"header", scenario.Call{Header: m{"content-type": "application/json", "X": m{"$absent": true}}}, scenario.Call{Header: m{"content-type": "text/plain", "authorization": m{"$startsWith": "Bearer "}}}},
		{"header, exactly", scenario.Call{Header: m{"$exact": m{"content-type": m{"$nonEmpty": true}}}}, scenario.Call{Header: m{"$exact": m{}}}},
		{"header, malformed", scenario.Call{Header: m{}}, scenario.Call{Header: m{"$exact": m{"A": m{"$b": 1}}}}},
		{"method", scenario.Call{Method: "POST"}, scenario.Call{Method: "GET"}},
		{"path", scenario.Call{Path: m{"$oneOf": l{"/hook/a", "/b"}}}, scenario.Call{Path: "/b"}},
		{"proto", scenario.Call{Proto: "HTTP/2.0"}, scenario.Call{Proto: m{"$startsWith": "HTTP/1"}}},
		{"server name", scenario.Call{ServerName: "a.ns.svc"}, scenario.Call{ServerName: m{"$absent": true}}},
		{"protocols", scenario.Call{Protocols: l{"http/1.1"}}, scenario.Call{Protocols: l{"h2", "http/1.1"}}},
		{"client certificate", scenario.Call{ClientCertificate: "CN=caller"}, scenario.Call{ClientCertificate: "CN=other"}},
		{"connection", scenario.Call{Connection: "127.0.0.1:1"}, scenario.Call{Connection: "127.0.0.1:2"}},
	}
	var examples []example
	for _, field := range fields {
		for _, holds := range []bool{true, false} {
			expected, suffix := field.holds, ""
			if !holds {
				expected, suffix = field.fails, " fails"
			}
			expected.Webhook = "a"
			expect := &scenario.Expectation{Calls: &scenario.Calls{InOrder: []scenario.Call{expected}}}
			examples = append(examples, example{"call " + field.name + suffix, expect, one, holds})
		}
	}
	expectField := func(c scenario.Call) *scenario.Expectation {
		return &scenario.Expectation{Calls: &scenario.Calls{InOrder: []scenario.Call{c}}}
	}
	notDecoded := call("a", 0, 1)
	notDecoded.Review = nil
	return append(examples,
		example{"inferred call", expectField(scenario.Call{Webhook: "a", Phase: "validating"}), ok(inferred("a")), true},
		example{"inferred call fails of what it does not show", expectField(scenario.Call{Webhook: "a", Phase: "mutating", Request: m{"x": m{"$absent": true}}, Path: "/"}), ok(inferred("a")), false},
		example{"a call that was not decoded", expectField(scenario.Call{Webhook: "a", Review: m{"x": 1}}), ok(notDecoded), false},
	)
}

func timeExamples() []example {
	type x = scenario.Expectation
	open := call("b", 5, 0)
	open.Finished = time.Time{}
	late := ok(call("a", 0, 10), call("b", 10, 120))
	givenUp := ok(call("a", 0, 10), call("b", 10, 120))
	givenUp.Trace[1].GivenUp = true
	unknown := ok(call("a", 0, 10))
	unknown.Finished = time.Time{}
	distinct := func(paths ...string) *x { return &x{Distinct: paths} }
	return []example{
		{"distinct", distinct("review.request.uid", "request.uid", "webhook"), ok(call("a", 0, 1), call("b", 1, 2)), true},
		{"distinct fails", distinct("request.uid", "request.operation"), ok(call("a", 0, 1), call("b", 1, 2), call("c", 2, 3)), false},
		{"distinct fails in a quoted key", distinct(`request.object.metadata.labels["example.com/y"]`), ok(call("a", 0, 1), call("b", 1, 2)), false},
		{"distinct fails where there is nothing", distinct("request.nothing"), ok(call("a", 0, 1), call("b", 1, 2)), false},
		{"distinct fails of one call", distinct("request.uid"), ok(call("a", 0, 1)), false},
		{"distinct fails of a bad path", distinct("request["), ok(call("a", 0, 1), call("b", 1, 2)), false},
		{"serial", &x{Serial: true}, ok(call("a", 0, 10), call("b", 10, 20), call("c", 21, 30)), true},
		{"serial fails", &x{Serial: true}, ok(call("a", 0, 10), call("b", 7, 20)), false},
		{"serial fails of one that outlasts another", &x{Serial: true}, ok(call("a", 0, 50), call("b", 50, 60), call("a", 60, 90), call("c", 80, 85), call("d", 86, 90)), false},
		{"serial fails of no calls", &x{Serial: true}, ok(), false},
		{"serial fails of an inferred call", &x{Serial: true}, ok(call("a", 0, 10), inferred("b")), false},
		{"serial fails of an open call", &x{Serial: true}, ok(call("a", 0, 1), open), false},
		{"overlapping", &x{Overlapping: []string{"a", "b", "c"}}, ok(call("a", 0, 10), call("b", 2, 20), call("d", 3, 4), call("c", 9, 30)), true},
		{"overlapping fails", &x{Overlapping: []string{"a", "b", "c"}}, ok(call("a", 0, 10), call("b", 2, 20), call("c", 12, 30)), false},
		{"overlapping fails, the first answered last", &x{Overlapping: []string{"a", "b"}}, ok(call("a", 0, 30), call("b", 2, 10), call("a", 12, 15)), false},
		{"overlapping fails where they touch", &x{Overlapping: []string{"a", "b"}}, ok(call("a", 0, 10), call("b", 10, 20)), false},
		{"overlapping fails of one not called", &x{Overlapping: []string{"a", "b"}}, ok(call("a", 0, 10)), false},
		{"overlapping fails of one call", &x{Overlapping: []string{"a"}}, ok(call("a", 0, 10)), false},
		{"overlapping fails of an open call", &x{Overlapping: []string{"a", "b"}}, ok(call("a", 0, 10), open), false},
		{"answered last", &x{AnsweredLast: true}, ok(call("a", 0, 10), call("b", 0, 100)), true},
		{"answered last fails", &x{AnsweredLast: true}, late, false},
		{"answered last with one that was given up", &x{AnsweredLast: true}, givenUp, true},
		{"answered last fails of no calls", &x{AnsweredLast: true}, ok(), false},
		{"answered last fails of no time", &x{AnsweredLast: true}, unknown, false},
		{"answered last fails of an inferred call", &x{AnsweredLast: true}, ok(inferred("a")), false},
	}
}

func TestJudge(t *testing.T) {
	for _, group := range []struct {
		name     string
		examples []example
	}{
		{"answer", answerExamples()}, {"calls", callExamples()}, {"fields", fieldExamples()}, {"times", timeExamples()},
	} {
		t.Run(group.name, func(t *testing.T) {
			var texts strings.Builder
			for _, e := range group.examples {
				mismatches := expect.Judge(e.expect, e.got)
				if holds := mismatches == nil; holds != e.holds {
					t.Errorf("%s: got %v, want holds = %t", e.name, mismatches, e.holds)
				}
				if e.holds {
					continue
				}
				fmt.Fprintf(&texts, "## %s\n", e.name)
				for _, mismatch := range mismatches {
					about := ""
					if mismatch.Call != nil {
						about = fmt.Sprintf(" [call %d]", *mismatch.Call)
					}
					fmt.Fprintf(&texts, "%s%s\n", mismatch, about)
				}
			}
			golden.Compare(t, filepath.Join("testdata", group.name+".golden"), texts.String())
		})
	}
	golden.Whole(t, filepath.Join("testdata", "*.golden"))
}

func TestJudgeLeavesTheTraceAlone(t *testing.T) {
	want := &scenario.Expectation{Calls: &scenario.Calls{AnyOrder: []scenario.Call{{Webhook: "b", Header: m{"a": "x"}}, {Webhook: "a"}}}}
	got := ok(call("a", 0, 1), call("b", 0, 1))
	before := fmt.Sprintf("%v %v", got, *want.Calls)
	expect.Judge(want, got)
	if after := fmt.Sprintf("%v %v", got, *want.Calls); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
}

// Mismatches in an audit event do not show the data of a Secret.
func TestAuditIsRedacted(t *testing.T) {
	var got framework.Result
	got.Status.Code = 201
	got.Audit = &framework.Audit{Level: "RequestResponse", ResponseObject: map[string]any{"kind": "Secret", "data": map[string]any{"pin": "1234"}}}
	expectation := &scenario.Expectation{Audit: map[string]any{"responseObject": map[string]any{"data": map[string]any{"pin": "1235"}}}}
	found := expect.Judge(expectation, got)
	if want := "audit.responseObject.data.pin: expected (redacted), actual (redacted)"; len(found) != 1 || !strings.Contains(found[0].String(), want) {
		t.Errorf("got %v; want %s", found, want)
	}
}

// A token is hidden before a long text is cut, wherever the cut is.
func TestTextIsRedactedBeforeItIsCut(t *testing.T) {
	const secret = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9"
	for length := range 2 * len(secret) {
		long := strings.Repeat(".", 300-length) + secret + "."
		var got framework.Result
		got.Status.Message, got.Status.Reason, got.Status.Code = long, "Forbidden", 403
		got.Status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: long}}}
		got.Warnings = []string{long}
		got.Audit = &framework.Audit{Annotations: map[string]string{"a": long}}
		got.Trace = framework.Trace{
			{Webhook: "w", Observed: true, Review: map[string]any{"request": map[string]any{"name": long}}},
			{Plugin: &framework.PluginCall{Name: "P", Handled: true, Refused: &framework.PluginRefusal{Message: long}}},
		}
		expectation := &scenario.Expectation{
			Message: []string{long + "!"}, Details: map[string]any{"causes": []any{}}, Warnings: []any{long + "!"},
			Audit:    map[string]any{"annotations": map[string]any{"a": long + "!"}},
			Calls:    &scenario.Calls{InOrder: []scenario.Call{{Webhook: "w", Request: map[string]any{"name": long + "!"}}}},
			Plugins:  &scenario.Plugins{InOrder: []scenario.PluginCall{{Plugin: "P", Refused: map[string]any{"message": long + "!"}}}},
			Distinct: []string{"review.request.name"},
		}
		got.Trace = append(got.Trace, got.Trace[0])
		refuser := expect.Refuser{Webhook: "w", Message: "no"}
		found := expect.Judge(expectation, got)
		found = append(found, expect.Refused(&scenario.Expectation{RefusedBy: &scenario.RefusedBy{Validation: long + "!"}}, refuser, got.Status)...)
		if len(found) < 9 {
			t.Fatalf("got %d mismatches, want one for each text:\n%v", len(found), found)
		}
		for _, one := range found {
			if text := one.String(); strings.Contains(text, "eyJ") || strings.Contains(text, "IiJ9") {
				t.Errorf("%d characters before the cut, a part of the secret is shown:\n%s", length, text)
			}
		}
	}
}

func ExampleJudge() {
	want := &scenario.Expectation{Code: []int{200, 201}, Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a"}}}}
	got := framework.Result{Status: metav1.Status{Code: 403}, Trace: framework.Trace{{Webhook: "b", Phase: framework.Mutating}}}
	for _, mismatch := range expect.Judge(want, got) {
		fmt.Println(mismatch)
	}
	// Output:
	// code: expected one of 200, 201, actual 403
	// calls[0]: expected a call of a, actual a mutating call of b (call 1 of 1)
	// calls: expected ["a"], actual ["b"]
}
