package fence

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// endpoints returns the Webhooks of a run with its own Hook server.
func endpoints(t *testing.T, run string, byService map[string]framework.Endpoint) *Webhooks {
	t.Helper()
	c, err := client.New(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	hooks := startHooks(t, hook.Options{})
	i := &install.Installer{Client: c, Hooks: hooks, Run: run, ClientConfig: install.URLClientConfig, HookAddress: hooks.Address(), Endpoints: install.Endpoints{ByAddress: byService}}
	return &Webhooks{Client: c, Install: i, Progress: func(line string) { t.Log(line) }}
}

func startHooks(t *testing.T, options hook.Options) *hook.Server {
	t.Helper()
	hooks, err := hook.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

func scope(t *testing.T, i *install.Installer) *install.Scope {
	t.Helper()
	made, err := i.NewScope(t.Context(), "at-"+i.Run+"-001", hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Uninstall(context.WithoutCancel(t.Context()), made); err != nil {
			t.Error(err)
		}
	})
	return made
}

func TestHookServers(t *testing.T) {
	i := endpoints(t, "servers", nil).Install
	wrong := startHooks(t, hook.Options{AdvertiseHost: "127.0.0.2"}) // it listens on 127.0.0.1
	right := startHooks(t, hook.Options{})
	reached, err := HookServers(t.Context(), i, scope(t, i), []*hook.Server{wrong, right}, 20*time.Second)
	if diff := cmp.Diff([]bool{false, true}, reached); diff != "" || err != nil {
		t.Errorf("reached (-want +got): %s, %v", diff, err)
	}
	i = endpoints(t, "noserver", nil).Install
	reached, err = HookServers(t.Context(), i, scope(t, i), []*hook.Server{wrong}, time.Second)
	if diff := cmp.Diff([]bool{false}, reached); diff != "" || err != nil {
		t.Errorf("reached (-want +got): %s, %v", diff, err)
	}
}

// webhook is a webhook under test that answers with a handler.
func webhookServer(t *testing.T, handler http.HandlerFunc) (url string, caBundle []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it disconnect
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// respond answers an AdmissionReview.
func respond(allowed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review)
		request, _ := review["request"].(map[string]any)
		review["response"] = map[string]any{"uid": request["uid"], "allowed": allowed}
		_ = json.NewEncoder(w).Encode(review)
	}
}

func configuration(service string) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingWebhooks, "metadata": map[string]any{"name": "a"},
		"webhooks": []any{map[string]any{"name": "w.example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": "guard", "name": service}}}},
	}
}

// Any answer is an answer; a webhook that the API server cannot call is an error that
// says why.
func TestWebhooksAnswer(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedURL := "https://" + closed.Addr().String()
	_ = closed.Close()
	allowing, caBundle := webhookServer(t, respond(true))
	denying, _ := webhookServer(t, respond(false))
	notFound, _ := webhookServer(t, http.NotFound)
	nonsense, _ := webhookServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	panicking, _ := webhookServer(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	e := endpoints(t, "wait", map[string]framework.Endpoint{
		"guard/allowing":  {URL: allowing, CABundle: caBundle},
		"guard/denying":   {URL: denying, CABundle: caBundle},
		"guard/notfound":  {URL: notFound, CABundle: caBundle},
		"guard/nonsense":  {URL: nonsense, CABundle: caBundle},
		"guard/panicking": {URL: panicking, CABundle: caBundle, Timeout: time.Second},
		"guard/refused":   {URL: closedURL, Timeout: time.Second},
		"guard/untrusted": {URL: allowing, Timeout: time.Second},
		"guard/missing":   {Timeout: time.Second},
	})
	for service, want := range map[string]string{
		"allowing": "", "denying": "", "notfound": "", "nonsense": "", "panicking": "",
		"refused":   "connection refused; start it before the run",
		"untrusted": "x509: certificate signed by unknown authority; its certificate must be valid",
		"missing":   `service "missing" not found; deploy it before the run`,
	} {
		t.Run(service, func(t *testing.T) {
			err := e.Wait(t.Context(), []map[string]any{configuration(service)})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Service guard/"+service)) {
				t.Errorf("got %v, want %q", err, want)
			}
			if errors.Is(err, framework.ErrTimeout) {
				t.Errorf("%v is an ErrTimeout, which would be inconclusive", err)
			}
			// Once in a run.
			if left := e.notAnswered([]map[string]any{configuration(service)}); (len(left) == 0) != (want == "") {
				t.Errorf("not answered: %v, want none: %t", left, want == "")
			}
		})
	}
}

func TestNotAnswered(t *testing.T) {
	e := &Webhooks{Install: &install.Installer{Run: "x"}}
	own := configuration("a")
	own["webhooks"].([]any)[0].(map[string]any)["clientConfig"] = map[string]any{"service": map[string]any{"namespace": "at-x-001", "name": "s"}}
	hookOnly := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingWebhooks, "webhooks": []any{map[string]any{"name": "h"}}}
	policy := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingPolicy}
	found := e.notAnswered([]map[string]any{own, hookOnly, policy, configuration("a"), configuration("a"), configuration("b"), {}})
	e.Install.Endpoints.ByAddress = map[string]framework.Endpoint{"127.0.0.1:9443": {}}
	if urls := e.notAnswered([]map[string]any{byURL("https://127.0.0.1:9443/a"), byURL("https://127.0.0.1:9444/a"), byURL("")}); len(urls) != 1 || urls[0].String() != "https://127.0.0.1:9443/a" {
		t.Errorf("got %v, want the URL that has an Endpoint", urls)
	}
	if len(found) != 2 || found[0].String() != "Service guard/a" || found[1].String() != "Service guard/b" {
		t.Errorf("got %v, want the two Services that do not belong to the scenario, each once", found)
	}
}

// byURL is a configuration with a webhook that has a URL.
func byURL(address string) map[string]any {
	made := configuration("")
	made["webhooks"].([]any)[0].(map[string]any)["clientConfig"] = map[string]any{"url": address}
	return made
}

func TestFailedCall(t *testing.T) {
	const failed = `Internal error occurred: failed calling webhook "n0.fail.ready.admissiontest.dev": `
	for message, want := range map[string]callState{
		failed + `failed to call webhook: Post "https://127.0.0.1:1/mutate?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused`:                                  {problem: "dial tcp 127.0.0.1:1: connect: connection refused"},
		failed + `failed to call webhook: Post "https://s.n.svc:443/?timeout=5s": service "s" not found`:                                                                    {problem: `service "s" not found`},
		failed + `failed to call webhook: Post "https://s.n.svc:443/?timeout=5s": tls: failed to verify certificate: x509: certificate is valid for a.example, not s.n.svc`: {problem: "tls: failed to verify certificate: x509: certificate is valid for a.example, not s.n.svc", certificate: true},
		failed + `failed to call webhook: Post "https://127.0.0.1:1/mutate?timeout=5s": EOF`:                                                                                {problem: "EOF", closed: true},
		failed + `failed to call webhook: Post "https://127.0.0.1:1/mutate?timeout=5s": stream error: stream ID 1; INTERNAL_ERROR; received from peer`:                      {problem: "stream error: stream ID 1; INTERNAL_ERROR; received from peer", closed: true},
		failed + `failed to call webhook: the server could not find the requested resource`:                                                                                 {answered: true},
		failed + `received invalid webhook response: expected response.uid="x", got ""`:                                                                                     {answered: true},
	} {
		t.Run(message, func(t *testing.T) {
			if got := failedCall(message); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
