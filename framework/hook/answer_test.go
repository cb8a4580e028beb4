package hook_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestReplyMakesResponse(t *testing.T) {
	base64Of := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, test := range []struct {
		name  string
		reply hook.Reply
		want  map[string]any
		words string
	}{
		{"zero", hook.Reply{}, map[string]any{"uid": "u-1", "allowed": true}, "allowed"},
		{"denied", hook.Reply{Allowed: pointer(false)}, map[string]any{"uid": "u-1", "allowed": false}, "denied"},
		{
			"status denies", hook.Reply{Status: map[string]any{"code": 418, "message": "no"}},
			map[string]any{"uid": "u-1", "allowed": false, "status": map[string]any{"code": 418.0, "message": "no"}}, "denied",
		},
		{
			"allowed with status", hook.Reply{Allowed: pointer(true), Status: map[string]any{"message": "yes"}},
			map[string]any{"uid": "u-1", "allowed": true, "status": map[string]any{"message": "yes"}}, "allowed",
		},
		{
			"patch with null", hook.Reply{Patch: []hook.PatchOperation{{Op: "add", Path: "/a"}, {Op: "remove", Path: "/b", Value: 1}}},
			map[string]any{
				"uid": "u-1", "allowed": true, "patchType": "JSONPatch",
				"patch": base64Of(`[{"op":"add","path":"/a","value":null},{"op":"remove","path":"/b"}]`),
			}, "allowed, patch (2 operations)",
		},
		{
			"empty patch", hook.Reply{Patch: []hook.PatchOperation{}},
			map[string]any{"uid": "u-1", "allowed": true, "patchType": "JSONPatch", "patch": base64Of("[]")}, "allowed, patch (0 operations)",
		},
		{
			"patch type", hook.Reply{Patch: []hook.PatchOperation{{Op: "move", From: "/a", Path: "/b"}}, PatchType: pointer("")},
			map[string]any{
				"uid": "u-1", "allowed": true, "patchType": "",
				"patch": base64Of(`[{"from":"/a","op":"move","path":"/b"}]`),
			}, "allowed, patch (1 operation)",
		},
		{
			"patch type alone", hook.Reply{PatchType: pointer("JSONPatch")},
			map[string]any{"uid": "u-1", "allowed": true, "patchType": "JSONPatch"}, "allowed",
		},
		{
			"warnings and annotations", hook.Reply{Warnings: []string{"w"}, AuditAnnotations: map[string]string{"k": "v"}},
			map[string]any{"uid": "u-1", "allowed": true, "warnings": []any{"w"}, "auditAnnotations": map[string]any{"k": "v"}}, "allowed",
		},
		{
			"merged", hook.Reply{Review: map[string]any{"response": map[string]any{"uid": nil, "allowed": "yes", "x": map[string]any{"y": 1, "z": nil}}}},
			map[string]any{"allowed": "yes", "x": map[string]any{"y": 1.0}}, "no verdict",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := start(t)
			got := register(t, server, "o", test.reply).call(t)
			if diff := cmp.Diff(test.want, got.response(t)); diff != "" {
				t.Errorf("response: -want +got\n%s", diff)
			}
			if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %s, want 200 application/json", got.StatusCode, got.Header.Get("Content-Type"))
			}
			if words := server.Calls("o")[0].Answer; words != test.words {
				t.Errorf("Answer: got %q, want %q", words, test.words)
			}
		})
	}
}

func TestAnswersInVersionAsked(t *testing.T) {
	c := register(t, start(t), "o")
	for _, version := range []string{v1, v1beta1} {
		t.Run(version, func(t *testing.T) {
			got, err := c.post(t.Context(), review(version, "u"))
			if err != nil {
				t.Fatal(err)
			}
			if asked := got.review(t)["apiVersion"]; asked != version {
				t.Errorf("got apiVersion %v, want the one asked for, %s", asked, version)
			}
			if got.Proto != "HTTP/1.1" {
				t.Errorf("got %s, want HTTP/1.1 only", got.Proto)
			}
		})
	}
}

func TestRepliesInTurn(t *testing.T) {
	server := start(t)
	c := register(t, server, "o", hook.Reply{Warnings: []string{"first"}}, hook.Reply{Warnings: []string{"second"}})
	warnings := func() string { return fmt.Sprint(c.call(t).response(t)["warnings"]) }
	for i, want := range []string{"[first]", "[second]", "[second]"} {
		if got := warnings(); got != want {
			t.Errorf("call %d: got warnings %s, want %s", i+1, got, want)
		}
	}
	// What carries no review takes no reply.
	if err := server.SetScript("o", "hook.example.com", hook.Script{Replies: []hook.Reply{{Warnings: []string{"new"}}, {}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.post(t.Context(), []byte("{")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"[new]", "<nil>", "<nil>"} {
		if got := warnings(); got != want {
			t.Errorf("call %d after SetScript: got warnings %s, want %s", i+1, got, want)
		}
	}
}

func TestHTTPOverrides(t *testing.T) {
	server := start(t)
	c := register(t, server, "o",
		hook.Reply{HTTP: &hook.HTTP{Code: http.StatusTeapot, Header: map[string]string{"X-A": "b", "content-type": "", "Date": ""}, Body: pointer("<p>")}},
		hook.Reply{Fault: hook.HTTP404, HTTP: &hook.HTTP{Code: http.StatusGone}},
		hook.Reply{HTTP: &hook.HTTP{Header: map[string]string{"Content-Length": "100000"}}},
		hook.Reply{HTTP: &hook.HTTP{Code: http.StatusNoContent}},
	)
	got := c.call(t)
	if got.StatusCode != http.StatusTeapot || string(got.body) != "<p>" || got.Header.Get("X-A") != "b" {
		t.Errorf("got %d %q %v, want 418 <p> with X-A", got.StatusCode, got.body, got.Header)
	}
	if got.Header.Get("Content-Type")+got.Header.Get("Date") != "" {
		t.Errorf("got header %v, want neither Content-Type nor Date", got.Header)
	}
	if got := c.call(t); got.StatusCode != http.StatusGone || string(got.body) != "404 page not found\n" {
		t.Errorf("fault with code: got %d %q, want 410 and the fault's body", got.StatusCode, got.body)
	}
	if got, err := c.post(t.Context(), review(v1, "u")); err == nil {
		t.Errorf("short body: got %q, want an error about its length", got.body)
	}
	if got := c.call(t); got.StatusCode != http.StatusNoContent || len(got.body) != 0 {
		t.Errorf("got %d %q, want 204 without a body", got.StatusCode, got.body)
	}
	if words := server.Calls("o")[0].Answer; words != "HTTP 418" {
		t.Errorf("Answer: got %q, want HTTP 418", words)
	}
}

func TestAnswerThatCannotBeMade(t *testing.T) {
	server := start(t)
	c := register(t, server, "o", hook.Reply{Patch: []hook.PatchOperation{{Op: "add", Path: "/a", Value: math.Inf(1)}}})
	if got := c.call(t); got.StatusCode != http.StatusInternalServerError {
		t.Errorf("got %d, want 500", got.StatusCode)
	}
	const want = "answer a call of webhook hook.example.com: encode patch"
	if err := server.Err("o"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRegisteredConversion(t *testing.T) {
	server := start(t)
	const asked = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"g/v2",` +
		`"objects":[{"apiVersion":"g/v1","a":1}]}}`
	for want, conversion := range map[string]hook.Conversion{
		`{"apiVersion":"g/v2","b":1}`: {Renames: []map[string]string{{"v1": "a", "v2": "b"}}},
		`{"apiVersion":"g/v2","c":1}`: {Renames: []map[string]string{{"v1": "a", "v2": "c"}}}, // instead of the first
	} {
		t.Run(want, func(t *testing.T) {
			endpoint, err := server.RegisterConversion("o", "crd", conversion)
			if err != nil {
				t.Fatal(err)
			}
			got, err := callerOf(t, endpoint).post(t.Context(), []byte(asked))
			if err != nil || !strings.Contains(string(got.body), want) {
				t.Errorf("got %s, %v; want %s", got.body, err, want)
			}
		})
	}
	if calls := server.Calls("o"); len(calls) != 0 {
		t.Errorf("got %+v, want no calls recorded", calls)
	}
}

func TestRedirectToSibling(t *testing.T) {
	for _, test := range []struct {
		code   int
		method string
		review bool
	}{{http.StatusTemporaryRedirect, http.MethodPost, true}, {http.StatusFound, http.MethodGet, false}} {
		t.Run(http.StatusText(test.code), func(t *testing.T) {
			server := start(t)
			c := register(t, server, "o", hook.Reply{HTTP: &hook.HTTP{Code: test.code, Header: map[string]string{"Location": "sibling"}}})
			if _, err := server.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "sibling", Phase: "mutating"}); err != nil {
				t.Fatal(err)
			}
			c.client.CheckRedirect = nil
			c.call(t)
			calls := server.Calls("o")
			if len(calls) != 2 || calls[1].Webhook != "sibling" || calls[1].Method != test.method || (calls[1].Review != nil) != test.review {
				t.Errorf("%d: got calls %+v, want a %s to the sibling, with a review: %t", test.code, calls, test.method, test.review)
			}
		})
	}
}

// A controller's request takes no reply of the script and is not recorded.
func TestHeed(t *testing.T) {
	server := start(t)
	server.SetUserFilter("o", func(user string) bool { return user == "me" })
	c := register(t, server, "o", hook.Reply{Allowed: pointer(false)}, hook.Reply{})
	as := func(user string) any {
		body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","userInfo":{"username":%q}}}`, user)
		got, err := c.post(t.Context(), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return got.response(t)["allowed"]
	}
	if as("controller") != true || as("me") != false || as("controller") != true || as("me") != true {
		t.Error("want only my calls to take the replies: a refusal, then an allowance; the controller's to be allowed")
	}
	if calls := server.Calls("o"); len(calls) != 2 {
		t.Errorf("%d calls are recorded; want my two", len(calls))
	}
	server.SetUserFilter("o", nil)
	if as("controller") != true || len(server.Calls("o")) != 3 {
		t.Error("with nil, want the calls of every user recorded")
	}
}
