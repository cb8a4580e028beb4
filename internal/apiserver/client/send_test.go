package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
)

// serve returns a client of a server that answers every request with a handler.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := newWith(&rest.Config{Host: server.URL}, atOnce)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A request is sent as composed: nothing is added but what is documented.
func TestSendRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusOK)
	})
	result, err := c.Send(t.Context(), HTTPRequest{
		Method: http.MethodPatch, Path: "/apis/a/v1/namespaces/n/things/a b/proxy/x/", Query: url.Values{"timeout": {"7s"}, "command": {"a", "b"}},
		Body: []byte("{not json"), ContentType: "application/merge-patch+json",
		User: &framework.User{Name: "jane", UID: "u", Groups: []string{"g", "h"}, Extra: map[string][]string{"example.com/x y": {"1", "2"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPatch || got.URL.Path != "/apis/a/v1/namespaces/n/things/a b/proxy/x/" || got.URL.RawQuery != "command=a&command=b&timeout=7s" {
		t.Errorf("got %s %s?%s", got.Method, got.URL.Path, got.URL.RawQuery)
	}
	if string(body) != "{not json" {
		t.Errorf("body: got %q", body)
	}
	want := http.Header{
		"Accept": {"application/json"}, "Content-Type": {"application/merge-patch+json"}, "Audit-Id": {result.AuditID},
		"Impersonate-User": {"jane"}, "Impersonate-Uid": {"u"}, "Impersonate-Group": {"g", "h"}, "Impersonate-Extra-Example.com%2fx%20y": {"1", "2"},
	}
	for _, name := range []string{"User-Agent", "Accept-Encoding", "Content-Length"} {
		got.Header.Del(name)
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("header: -want +got\n%s", diff)
	}
	if result.Started.IsZero() || result.Finished.Before(result.Started) {
		t.Errorf("started %s, finished %s", result.Started, result.Finished)
	}
}

// Every response is a result: whatever its status, type and body are.
func TestSendResponse(t *testing.T) {
	const status = `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}`
	for name, test := range map[string]struct {
		code        int
		contentType string
		body        string
		message     string
		reason      string
		object      bool
	}{
		"object":            {201, "application/json", `{"kind":"ConfigMap","metadata":{"name":"a"}}`, "", "", true},
		"status":            {403, "application/json", status, "no", "Forbidden", false},
		"text":              {500, "text/plain", "broken\n", "broken\n", "", false},
		"no type":           {504, "", `{"metadata":{},"status":"Failure"}`, "", "", false},
		"unknown type":      {200, "application/x-backend", "hello", "hello", "", false},
		"retry is not sent": {429, "text/plain", "later", "later", "", false},
		"empty":             {204, "", "", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Header()["Content-Type"] = nil
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}
				w.Header().Add("Warning", `299 - "first \"one\""`)
				w.Header().Add("Warning", `299 - "second"`)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			})
			got, err := c.Send(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/x"})
			if err != nil {
				t.Fatal(err)
			}
			if int(got.Status.Code) != test.code || got.Status.Message != test.message || string(got.Status.Reason) != test.reason || (got.Object != nil) != test.object {
				t.Errorf("got %+v, object %v", got.Status, got.Object)
			}
			if diff := cmp.Diff([]string{`first "one"`, "second"}, got.Warnings); diff != "" {
				t.Errorf("warnings: -want +got\n%s", diff)
			}
			if requests != 1 {
				t.Errorf("sent %d times, want once", requests)
			}
		})
	}
}

// Without a response, nothing is known about the request.
func TestSendWithoutResponse(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"closed": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serve(t, handler).Send(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/x"})
			if !errors.Is(err, framework.ErrNoResponse) || got.Status.Code != 0 {
				t.Errorf("got %+v, %v; want ErrNoResponse", got.Status, err)
			}
		})
	}
	c, err := newWith(&rest.Config{Host: "https://127.0.0.1:1"}, atOnce)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/x"}); !errors.Is(err, framework.ErrNoResponse) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want ErrNoResponse with the reason", err)
	}
	if _, err := New(nil); err == nil {
		t.Error("New(nil) returned no error")
	}
}
