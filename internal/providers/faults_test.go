package providers

import (
	"encoding/json"
	"encoding/pem"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/internal/engine"
)

// faultPercent is the share of requests that faultyProxy does not answer as the API server
// does.
const faultPercent = 1

// faultyProxy returns a configuration of a proxy in front of an API server. For one of a
// hundred requests it answers 429, 503 or 504, closes the connection before or after the
// API server handled the request, or waits. It counts these faults.
func faultyProxy(t *testing.T, admin *rest.Config, faults *atomic.Int64) *rest.Config {
	t.Helper()
	transport, err := rest.TransportFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	if behind.Host == "" {
		behind = &url.URL{Host: admin.Host}
	}
	behind.Scheme = "https"
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		Transport:    transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rand.IntN(100) >= faultPercent || r.Header.Get("Upgrade") != "" {
			proxy.ServeHTTP(w, r)
			return
		}
		faults.Add(1)
		switch rand.IntN(6) {
		case 0:
			refuse(w, http.StatusTooManyRequests)
		case 1:
			refuse(w, http.StatusServiceUnavailable)
		case 2:
			refuse(w, http.StatusGatewayTimeout)
		case 3:
			panic(http.ErrAbortHandler)
		case 4: // the API server handles the request, and its response is lost
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			time.Sleep(200 * time.Millisecond) //nolint:forbidigo // the fault
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return config
}

func refuse(w http.ResponseWriter, code int32) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Message: "a fault of the proxy",
	})
}

// What happens between us and the API server is no verdict about the API server.
func TestFaultsOnTheWay(t *testing.T) {
	admin := servedConfig(t)
	all := catalogue(t)
	run := func(config *rest.Config) map[string]framework.Verdict {
		out, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: RESTConfig{Config: config}})
		if err != nil {
			t.Fatal(err)
		}
		verdicts := map[string]framework.Verdict{}
		for _, outcome := range out.Outcomes {
			verdicts[outcome.Name] = outcome.Verdict
			if outcome.Verdict != framework.Pass && outcome.Verdict != framework.Unsupported {
				t.Logf("%s: %s after %d repetitions: %s", outcome.Name, outcome.Verdict, outcome.Repeated, outcome.Reason)
			}
		}
		return verdicts
	}
	want := run(admin)
	var faults atomic.Int64
	got := run(faultyProxy(t, admin, &faults))
	inconclusive := 0
	for name, verdict := range want {
		switch {
		case got[name] == framework.Inconclusive:
			inconclusive++
		case got[name] != verdict:
			t.Errorf("%s: %s with faults, %s without", name, got[name], verdict)
		}
	}
	if faults.Load() < 10 {
		t.Errorf("%d faults, want some dozens", faults.Load())
	}
	t.Logf("%d faults, %d of %d scenarios inconclusive", faults.Load(), inconclusive, len(want))
	if left, err := cluster.Cleanup(t.Context(), admin, cluster.CleanupOptions{}); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
