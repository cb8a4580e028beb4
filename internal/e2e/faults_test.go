package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// answering serves a handler instead of an API server and returns its configuration.
func answering(t *testing.T, handler http.Handler) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return config
}

// proxyTo returns a proxy to an API server. If the API server does not respond, it closes the
// connection.
func proxyTo(t *testing.T, admin *rest.Config) http.Handler {
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
	return &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		Transport:    transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

func refuse(w http.ResponseWriter, code int32) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	message, reason := "a fault of the proxy", metav1.StatusReasonUnknown
	if code == http.StatusForbidden {
		reason, message = metav1.StatusReasonForbidden, `things is forbidden: User "operator" cannot create resource "things"`
	}
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Message: message, Reason: reason,
	})
}

// runCatalogue returns the verdicts, and how often scenarios were repeated.
func runCatalogue(t *testing.T, config *rest.Config) (verdicts map[string]framework.Verdict, repeated int) {
	t.Helper()
	return runCatalogueWith(t, config, nil)
}

// onPass is a Progress that calls a function when a scenario passes: others are acting then.
type onPass func()

func (onPass) Stage(string) {}

func (f onPass) Done(outcome report.Outcome) {
	if outcome.Verdict == framework.Pass {
		f()
	}
}

// runCatalogueWith is runCatalogue with a Progress.
func runCatalogueWith(t *testing.T, config *rest.Config, progress engine.Progress) (verdicts map[string]framework.Verdict, repeated int) {
	t.Helper()
	out, err := engine.Run(t.Context(), engine.Options{Scenarios: catalogue(t), Provider: providers.RESTConfig{Config: config}, Progress: progress})
	if err != nil {
		t.Fatal(err)
	}
	verdicts = map[string]framework.Verdict{}
	for _, outcome := range out.Outcomes {
		verdicts[outcome.Name] = outcome.Verdict
		repeated += outcome.Repeated
		if outcome.Verdict != framework.Pass && outcome.Verdict != framework.Unsupported {
			t.Logf("%s: %s after %d repetitions: %s", outcome.Name, outcome.Verdict, outcome.Repeated, outcome.Reason)
		}
	}
	return verdicts, repeated
}

// wantSameOrInconclusive fails for each verdict that is another one and not inconclusive.
func wantSameOrInconclusive(t *testing.T, want, got map[string]framework.Verdict) (inconclusive int) {
	t.Helper()
	for name, verdict := range want {
		switch {
		case got[name] == framework.Inconclusive:
			inconclusive++
		case got[name] != verdict:
			t.Errorf("%s: %s with faults, %s without", name, got[name], verdict)
		}
	}
	return inconclusive
}

// The time for which an API server that restarts does not respond, and for which it then
// refuses every request, because it has not read the roles yet.
const (
	away      = 10 * time.Second
	withRoles = 3 * time.Second
)

// An API server that restarts during a run does not end the run, and is no verdict.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	admin := testserver.Own(t)
	want, _ := runCatalogue(t, admin)
	var down, starting atomic.Bool
	var refused atomic.Int64
	proxy := proxyTo(t, admin)
	config := answering(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			refused.Add(1)
			panic(http.ErrAbortHandler)
		}
		if starting.Load() && r.URL.Path != "/version" {
			refuse(w, http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
		if down.Load() { // a connection that was open, a watch for instance
			panic(http.ErrAbortHandler)
		}
	}))
	restart := sync.OnceFunc(func() {
		starting.Store(true)
		down.Store(true)
		time.AfterFunc(away, func() { down.Store(false) })
		time.AfterFunc(away+withRoles, func() { starting.Store(false) })
	})
	got, repeated := runCatalogueWith(t, config, onPass(restart))
	inconclusive := wantSameOrInconclusive(t, want, got)
	if refused.Load() == 0 || repeated == 0 {
		t.Errorf("%d requests refused, %d scenarios repeated; want some of each", refused.Load(), repeated)
	}
	t.Logf("%d requests refused, scenarios repeated %d times, %d of %d inconclusive", refused.Load(), repeated, inconclusive, len(want))
	wantNothingLeft(t, admin)
}

// manyScenarios is how many scenarios TestManyScenarios runs on one server.
const manyScenarios = 3000

// many returns scenarios whose numbers are in the list. The numbers around 100 and
// 1000 have a webhook that decides about cluster-scoped objects: in 100 to 109 it denies,
// in 1000 to 1099 it allows and must be the only one that is called.
func many() []scenario.Scenario {
	all := make([]scenario.Scenario, 0, manyScenarios)
	for number := 1; number <= manyScenarios; number++ {
		s := scenario.Scenario{Metadata: scenario.Metadata{Name: fmt.Sprintf("many.n%05d", number)}, Area: "many"}
		s.Spec.Level = framework.Must
		class := map[string]any{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": int64(1),
			"metadata": map[string]any{"name": "$(id)-class"},
		}
		configMap := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "subject"}}
		step := scenario.Step{Create: configMap, DryRun: true, Then: expectation(true)}
		denies, allows := number >= 100 && number < 110, number >= 1000 && number < 1100
		if denies || allows {
			s.Spec.Given = []map[string]any{{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "a"},
				"webhooks": []any{map[string]any{"name": "a.example.com", "rules": []any{map[string]any{
					"operations": []any{"CREATE"}, "apiGroups": []any{"scheduling.k8s.io"}, "apiVersions": []any{"v1"}, "resources": []any{"priorityclasses"},
				}}}},
			}}
			var reply scenario.Reply
			reply.Allowed = &allows
			s.Spec.Hooks = map[string]scenario.Hook{"a.example.com": {Reply: reply}}
			step = scenario.Step{Create: class, DryRun: true, Then: expectation(allows)}
			step.Then.Calls = &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a.example.com"}}}
		}
		s.Spec.When = []scenario.Step{step}
		all = append(all, s)
	}
	return all
}

func expectation(allowed bool) *scenario.Expectation { return &scenario.Expectation{Allowed: &allowed} }

// In a run of thousands of scenarios, no webhook decides about a request of another
// scenario.
func TestManyScenarios(t *testing.T) {
	t.Parallel()
	all := many()
	got, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: providers.NewEnvtest(providers.EnvtestOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	if got.Summary.Pass != manyScenarios {
		i := slices.IndexFunc(got.Outcomes, func(o report.Outcome) bool { return o.Verdict != framework.Pass })
		t.Errorf("%+v, want %d passed; the first that did not: %+v", got.Summary, manyScenarios, got.Outcomes[i])
	}
}
