package hook_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// underTest is a webhook under test that answers with a handler.
func underTest(t *testing.T, handler http.HandlerFunc) *hook.Upstream {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return &hook.Upstream{
		URL:      server.URL + "/validate",
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// proxy registers a Hook with an Upstream.
func proxy(t *testing.T, server *recorder, owner string, upstream *hook.Upstream, replies ...hook.Reply) caller {
	t.Helper()
	endpoint, err := server.Register(proxyHook(owner, upstream, replies...))
	if err != nil {
		t.Fatal(err)
	}
	return callerOf(t, endpoint)
}

func proxyHook(owner string, upstream *hook.Upstream, replies ...hook.Reply) hook.Hook {
	return hook.Hook{
		Owner: owner, Configuration: "c", Webhook: "guard.example.com", Phase: framework.Validating,
		Upstream: upstream, Script: hook.Script{Replies: replies},
	}
}

// A call and its answer pass the proxy unchanged, byte for byte, and both are recorded.
func TestProxyChangesNothing(t *testing.T) {
	const odd = "{\n \"apiVersion\":\"admission.k8s.io/v1\", \"kind\":\"AdmissionReview\",\"response\":{\"uid\":\"u-1\",\"allowed\":true," +
		"\"patchType\":\"JSONPatch\",\"patch\":\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d\"}} \n"
	for name, test := range map[string]struct {
		code   int
		header http.Header
		body   string
		answer string
	}{
		"patch":    {200, http.Header{"Content-Type": {"application/json; a=b"}, "X-Two": {"1", "2"}, "Connection": {"X-Gone"}, "X-Gone": {"1"}}, odd, "allowed, patch (1 operation)"},
		"no type":  {200, http.Header{"Content-Type": nil}, odd, "allowed, patch (1 operation)"},
		"nonsense": {418, http.Header{"Retry-After": {"0"}}, "<html>", "HTTP 418"},
		"empty":    {200, nil, "", "no verdict"},
		"large":    {200, nil, odd + strings.Repeat(" ", 3<<20), "allowed, patch (1 operation)"},
	} {
		t.Run(name, func(t *testing.T) {
			var received *http.Request
			var body []byte
			upstream := underTest(t, func(w http.ResponseWriter, r *http.Request) {
				received = r
				body, _ = io.ReadAll(r.Body)
				for key, values := range test.header {
					w.Header()[key] = values
				}
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			})
			server := start(t)
			via := proxy(t, server, "o", upstream)
			sent := append(review(v1, "u-1"), "\n \n"...)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, via.url+"?timeout=7s&a=%20b", bytes.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"kube-apiserver-admission"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer x"}}
			got, err := via.do(request)
			if err != nil {
				t.Fatal(err)
			}
			if received.Method != http.MethodPost || received.URL.RequestURI() != "/validate?timeout=7s&a=%20b" || !strings.HasPrefix(upstream.URL, "https://"+received.Host+"/") || !bytes.Equal(sent, body) {
				t.Errorf("the webhook received %s %s at %s, %q", received.Method, received.URL, received.Host, body)
			}
			want := request.Header.Clone()
			want.Del("Accept-Encoding") // so that the answer can be read
			want["Content-Length"] = received.Header["Content-Length"]
			if diff := cmp.Diff(want, received.Header); diff != "" {
				t.Errorf("header of the call (-sent +received)\n%s", diff)
			}
			if got.StatusCode != test.code || string(got.body) != test.body {
				t.Errorf("got %d %.80q, want %d %.80q", got.StatusCode, got.body, test.code, test.body)
			}
			for key, values := range test.header {
				if key != "Connection" && key != "X-Gone" && cmp.Diff(values, got.Header[key]) != "" {
					t.Errorf("header %s: got %q, want %q", key, got.Header[key], values)
				}
			}
			if got.Header["X-Gone"] != nil {
				t.Error("a header of the connection was passed on")
			}
			call := server.Calls("o")[0]
			if call.Code != test.code || call.RequestBytes != len(sent) || call.ResponseBytes != len(test.body) || call.Answer != test.answer ||
				call.Path != "/validate" || call.URL != upstream.URL || call.Finished.Before(call.Started) {
				t.Errorf("recorded %+v", call)
			}
			if strings.HasPrefix(test.answer, "allowed") {
				want := map[string]any{"uid": "u-1", "allowed": true, "patchType": "JSONPatch", "patch": []any{map[string]any{"op": "add", "path": "/a", "value": int64(1)}}}
				if diff := cmp.Diff(want, call.Response); diff != "" {
					t.Errorf("recorded response (-want +got)\n%s", diff)
				}
			}
		})
	}
}

// Whatever a webhook does, a client of Kubernetes reports the same through the proxy.
func TestProxyReportsAsAPIServer(t *testing.T) {
	server, webhooks := start(t), start(t)
	variable := regexp.MustCompile(`https://127\.0\.0\.1:\d+/[^?"]*|127\.0\.0\.1:\d+`)
	for _, fault := range append(hook.Faults(), hook.NoFault) {
		t.Run(string(fault), func(t *testing.T) {
			direct, err := webhooks.Register(hook.Hook{
				Owner: "o", Configuration: "c", Webhook: "w-" + string(fault), Phase: framework.Mutating,
				Script: hook.Script{Replies: []hook.Reply{{Fault: fault}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			proxied, err := server.Register(proxyHook("o", &hook.Upstream{URL: direct.URL, CABundle: direct.CABundle}))
			if err != nil {
				t.Fatal(err)
			}
			var results []string
			for _, endpoint := range []hook.ClientConfig{direct, proxied} {
				limit := patience
				if fault == hook.Hang || fault == hook.Slow || fault == hook.TLSHang {
					limit = 300 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				request := &admissionv1.AdmissionReview{
					TypeMeta: metav1.TypeMeta{APIVersion: v1, Kind: "AdmissionReview"}, Request: &admissionv1.AdmissionRequest{UID: "u-1"},
				}
				response := &admissionv1.AdmissionReview{}
				result := "allowed"
				if err := callLikeAPIServer(ctx, endpoint, request, response); err != nil {
					result = variable.ReplaceAllString(err.Error(), "ADDRESS")
				} else if response.Response != nil {
					result = response.Response.String()
				}
				results = append(results, result)
			}
			if fault == hook.Slow { // the proxy reads the whole answer first, so the client waits for its header
				results[0] = strings.Replace(results[0], "unexpected error when reading response body. Please retry. Original error: ", `Post "ADDRESS": `, 1)
			}
			if results[0] != results[1] {
				t.Errorf("through the proxy a client reports\n%s\nand without it\n%s", results[1], results[0])
			}
		})
	}
}

// The certificate must be valid for the host or for the Service, and nothing else is accepted.
func TestProxyVerifies(t *testing.T) {
	server, webhooks := start(t), start(t)
	endpoint, err := webhooks.Register(hook.Hook{
		Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating,
		Script: hook.Script{Replies: []hook.Reply{{Fault: hook.TLSWrongName}}}, // valid for elsewhere.invalid
	})
	if err != nil {
		t.Fatal(err)
	}
	other := start(t).CABundle(t)
	for name, test := range map[string]struct {
		upstream hook.Upstream
		want     string
	}{
		"host":                {hook.Upstream{URL: endpoint.URL, CABundle: endpoint.CABundle}, "doesn't contain any IP SANs"},
		"other Service":       {hook.Upstream{URL: endpoint.URL, CABundle: endpoint.CABundle, ServiceName: "a.b.svc"}, "doesn't contain any IP SANs"},
		"Service":             {hook.Upstream{URL: endpoint.URL, CABundle: endpoint.CABundle, ServiceName: "elsewhere.invalid"}, ""},
		"Service, other CA":   {hook.Upstream{URL: endpoint.URL, CABundle: other, ServiceName: "elsewhere.invalid"}, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"CA of this machine":  {hook.Upstream{URL: endpoint.URL, ServiceName: "elsewhere.invalid"}, "x509: certificate signed by unknown authority"},
		"bundle is no bundle": {hook.Upstream{URL: endpoint.URL, CABundle: []byte("none")}, "unable to load root certificates: unable to parse bytes as PEM block"},
	} {
		t.Run(name, func(t *testing.T) {
			got := proxy(t, server, "o", &test.upstream).call(t)
			if test.want == "" && got.StatusCode != http.StatusOK || test.want != "" && (got.StatusCode != http.StatusBadGateway || !strings.Contains(string(got.body), test.want)) {
				t.Errorf("got %d %s, want %q", got.StatusCode, got.body, test.want)
			}
			calls := server.Calls("o")
			if last := calls[len(calls)-1]; test.want != "" && (last.Code != 0 || !strings.HasPrefix(last.Answer, "no answer: ") || !strings.Contains(last.Answer, test.want)) {
				t.Errorf("recorded %d %s", last.Code, last.Answer)
			}
		})
	}
}

// The webhook sees that the API server gave up, also while it waits.
func TestProxyEndsWithTheCall(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	upstream := underTest(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
		close(gone)
	})
	server := start(t)
	via := proxy(t, server, "o", upstream)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = via.post(ctx, review(v1, "u-1"))
	}()
	eventually(t, "the webhook is called", arrived)
	cancel()
	eventually(t, "the call of the webhook ends", gone)
	until(t, "the call is recorded as not answered", func() bool {
		return server.Calls("o")[0].Answer == "no answer: the client disconnected"
	})
}

// Faults in front of a webhook: it is called, and its answer changes.
func TestFaultsInFrontOfAWebhook(t *testing.T) {
	const denial = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":false}}`
	count := 0
	upstream := underTest(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		count++
		_, _ = io.WriteString(w, denial)
	})
	server := start(t)
	none := ""
	for name, test := range map[string]struct {
		reply  hook.Reply
		code   int
		body   string
		answer string
	}{
		"http-500":       {hook.Reply{Fault: hook.HTTP500}, 500, denial, "http-500, the webhook answered: denied"},
		"http-404":       {hook.Reply{Fault: hook.HTTP404}, 404, "404 page not found\n", "http-404, the webhook answered: denied"},
		"empty":          {hook.Reply{Fault: hook.Empty}, 200, "", "empty, the webhook answered: denied"},
		"wrong-uid":      {hook.Reply{Fault: hook.WrongUID}, 200, strings.Replace(denial, `{"uid":"u-1","allowed":false}`, `{"allowed":false,"uid":"00000000-0000-0000-0000-000000000000"}`, 1), "wrong-uid, the webhook answered: denied"},
		"code":           {hook.Reply{HTTP: &hook.HTTP{Code: 503, Header: map[string]string{"retry-after": "1"}}}, 503, denial, "HTTP 503, the webhook answered: denied"},
		"body":           {hook.Reply{HTTP: &hook.HTTP{Body: &none}}, 200, "", "HTTP 200, the webhook answered: denied"},
		"delay, no more": {hook.Reply{Delay: 1}, 200, denial, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Restart("o")
			before := count
			got := proxy(t, server, "o", upstream, test.reply).call(t)
			call := server.Calls("o")[0]
			if got.StatusCode != test.code || string(got.body) != test.body || call.Answer != test.answer || call.Code != test.code || count != before+1 {
				t.Errorf("got %d %s, recorded %d %s, %d calls", got.StatusCode, got.body, call.Code, call.Answer, count-before)
			}
		})
	}
	if _, err := proxy(t, server, "o", upstream, hook.Reply{Fault: hook.Reset}).post(t.Context(), review(v1, "u-1")); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("reset: got %v", err)
	}
	if _, err := proxy(t, server, "o", upstream, hook.Reply{Fault: hook.Refused}).post(t.Context(), review(v1, "u-1")); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("refused: got %v", err)
	}
}

// A webhook under test answers itself: a Script cannot.
func TestProxyRefusesReplies(t *testing.T) {
	server := start(t)
	upstream := &hook.Upstream{URL: "https://127.0.0.1:1"}
	_, err := server.Register(proxyHook("o", upstream, hook.Reply{Fault: hook.Slow}, hook.Reply{Allowed: pointer(false), Status: map[string]any{"code": 1}}))
	const want = "register hook guard.example.com of configuration c: check script: reply 2: allowed: has no effect, because the webhook under test answers; want fault, http, delay, barrier, meanwhile\n" +
		"check script: reply 2: status: has no effect, because the webhook under test answers; want fault, http, delay, barrier, meanwhile"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	proxy(t, server, "o", upstream)
	if err := server.SetScript("o", "guard.example.com", hook.Script{Replies: []hook.Reply{{Warnings: []string{"w"}}}}); err == nil || !strings.Contains(err.Error(), "warnings: has no effect") {
		t.Errorf("SetScript: got %v", err)
	}
	if err := server.SetScript("o", "guard.example.com", hook.Script{Replies: []hook.Reply{{Fault: "slwo"}}}); err == nil || !strings.Contains(err.Error(), `did you mean "slow"?`) {
		t.Errorf("SetScript: got %v", err)
	}
	for _, address := range []string{"http://127.0.0.1:1", "https://127.0.0.1:1path", "", "https://h?a=b"} {
		t.Run(address, func(t *testing.T) {
			if _, err := server.Register(proxyHook("o", &hook.Upstream{URL: address})); err == nil || !strings.Contains(err.Error(), "Upstream: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The webhook under test also decides about requests of other users, which are not recorded and
// see no Fault.
func TestProxyForwardsCallsOfOthers(t *testing.T) {
	called := false
	upstream := underTest(t, func(w http.ResponseWriter, _ *http.Request) {
		called = true
		w.WriteHeader(http.StatusTeapot)
	})
	server := start(t)
	via := proxy(t, server, "o", upstream, hook.Reply{Fault: hook.HTTP404})
	server.SetUserFilter("o", func(user string) bool { return user == "me" })
	got, err := via.post(t.Context(), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","userInfo":{"username":"other"}}}`))
	if err != nil || got.StatusCode != http.StatusTeapot || !called || len(server.Calls("o")) != 0 {
		t.Errorf("got %v, %d, called %t, recorded %v", err, got.StatusCode, called, server.Calls("o"))
	}
}

// CABundle returns the CA bundle of a Server.
func (r *recorder) CABundle(t *testing.T) []byte {
	t.Helper()
	return r.Address().CABundle
}
