package client

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

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

// On a cluster with several API servers, SendToAll asks on new connections until one of the responses lacks something.
func TestSendToAll(t *testing.T) {
	for name, test := range map[string]struct {
		others, lackingFrom int // the number of the request from which on the responses lack something
		sent                int
		missing             string
	}{
		"one":                  {1, 100, 1, ""},
		"several":              {2, 100, 1 + freshConnections, ""},
		"the first lacks":      {2, 1, 1, "x"},
		"another server lacks": {2, 5, 5, "x, on a new connection"},
	} {
		t.Run(name, func(t *testing.T) {
			var others []*server
			for range test.others {
				others = append(others, startServer(t, answerVersion))
			}
			balancer := withSlices(t, others...)
			var mu sync.Mutex
			connections := map[string]bool{}
			answer := balancer.Config.Handler
			balancer.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				connections[r.RemoteAddr] = true
				mu.Unlock()
				answer.ServeHTTP(w, r)
			})
			c, err := New(&rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: balancer.ca()}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if message := c.FindReplicas(t.Context()); (message != "") != (test.others > 1) {
				t.Errorf("message %q", message)
			}
			sent := 0
			_, missing, err := c.SendToAll(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/version"}, func(framework.Result) string {
				if sent++; sent >= test.lackingFrom {
					return "x"
				}
				return ""
			})
			mu.Lock()
			defer mu.Unlock()
			if sent != test.sent || missing != test.missing || err != nil || len(connections) < sent {
				t.Errorf("sent %d on %d connections, missing %q, %v; want %d, %q", sent, len(connections), missing, err, test.sent, test.missing)
			}
		})
	}
}

const secretToken = "token-of-the-operator"

// server is a TLS server that counts the requests, and those with the token.
type server struct {
	*httptest.Server
	requests, tokens atomic.Int64
}

func startServer(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if strings.Contains(r.Header.Get("Authorization"), secretToken) {
			s.tokens.Add(1)
		}
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it disconnect
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func answerVersion(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
}

// withSlices is an API server whose EndpointSlices name other servers.
func withSlices(t *testing.T, others ...*server) *server {
	t.Helper()
	list := discoveryv1.EndpointSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"}}
	for _, other := range others {
		host, port, err := net.SplitHostPort(other.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			Ports:      []discoveryv1.EndpointPort{{Port: ptr.To(int32(number))}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{host}}},
		})
	}
	return startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/apis/discovery.k8s.io/") {
			answerVersion(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
}

// Nothing is sent to an address that an EndpointSlice names: other clients can write it.
func TestReplicasGetNoCredentials(t *testing.T) {
	first, second := startServer(t, answerVersion), startServer(t, answerVersion)
	api := withSlices(t, first, second)
	c, err := New(&rest.Config{Host: api.URL, BearerToken: secretToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if message := c.FindReplicas(t.Context()); !strings.Contains(message, "2 API servers") {
		t.Errorf("message %q", message)
	}
	if _, missing, err := c.SendToAll(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/version"}, func(framework.Result) string { return "" }); missing != "" || err != nil {
		t.Error(missing, err)
	}
	if api.tokens.Load() == 0 || first.requests.Load()+second.requests.Load() != 0 {
		t.Errorf("the API server got %d tokens, the addresses of the EndpointSlice %d requests; want none", api.tokens.Load(), first.requests.Load()+second.requests.Load())
	}
}

// A redirect to another server does not carry the credentials there, and is the response.
func TestRedirects(t *testing.T) {
	other := startServer(t, answerVersion)
	plain := 0
	unencrypted := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plain++ }))
	defer unencrypted.Close()
	api := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/other":
			http.Redirect(w, r, other.URL+"/x", http.StatusFound)
		case "/unencrypted":
			http.Redirect(w, r, unencrypted.URL+"/x", http.StatusTemporaryRedirect)
		case "/self":
			http.Redirect(w, r, "/self/", http.StatusMovedPermanently)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			answerVersion(w, r)
		}
	})
	c, err := New(&rest.Config{Host: api.URL, BearerToken: secretToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for path, code := range map[string]int32{"/other": 302, "/unencrypted": 307, "/self": 200, "/loop": 302} {
		t.Run(path, func(t *testing.T) {
			got, err := c.Send(t.Context(), HTTPRequest{Method: http.MethodGet, Path: path})
			if err != nil || got.Status.Code != code {
				t.Errorf("got %d, %v; want %d", got.Status.Code, err, code)
			}
		})
	}
	if other.requests.Load() != 0 || plain != 0 {
		t.Errorf("other servers got %d and %d requests; want none", other.requests.Load(), plain)
	}
}
