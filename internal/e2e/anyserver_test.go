package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// admissionPlugins are the plugins that call webhooks and evaluate policies.
const admissionPlugins = "MutatingAdmissionWebhook,ValidatingAdmissionWebhook,MutatingAdmissionPolicy,ValidatingAdmissionPolicy"

// beside starts another API server with the storage of a server.
func beside(t *testing.T, server *envtest.Server, flags map[string]string) *rest.Config {
	t.Helper()
	flags["etcd-servers"] = "unix://" + server.Environment.ControlPlane.Etcd.URL.Path
	other, err := envtest.Start(t.Context(), envtest.Options{Profile: envtest.Profile{Flags: flags}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	return other.Config
}

// someScenarios returns scenarios that need what a filter takes away, and others. The environment variable
// ADMISSIONTEST_ANYSERVER selects others by name, area or pattern, separated by commas: "*" is the catalogue.
func someScenarios(t *testing.T) []scenario.Scenario {
	t.Helper()
	names := []string{"dryrun", "warning", "delete", "exemption"}
	if all := os.Getenv("ADMISSIONTEST_ANYSERVER"); all != "" {
		names = strings.Split(all, ",")
	}
	selected, err := engine.Select(catalogue(t), names, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return selected
}

// lateBy is the delay of configurations, which the environment variable ADMISSIONTEST_LATE replaces.
func lateBy(t *testing.T) time.Duration {
	t.Helper()
	delay, err := time.ParseDuration(cmp.Or(os.Getenv("ADMISSIONTEST_LATE"), "2s"))
	if err != nil {
		t.Fatal(err)
	}
	return delay
}

// A server that lacks something gets the verdicts of a complete one, as far as it can be judged, and nothing is
// left on it.
func TestAnyServer(t *testing.T) {
	t.Parallel()
	server := testserver.OwnServer(t)
	all := someScenarios(t)
	run := func(t *testing.T, config *rest.Config) (map[string]report.Outcome, time.Duration) {
		t.Helper()
		began := time.Now()
		r, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: providers.RESTConfig{Config: config, Progress: func(line string) { t.Log(line) }}})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		t.Logf("%s in %s", r.Summary, time.Since(began).Round(time.Second/10))
		found := map[string]report.Outcome{}
		for _, outcome := range r.Outcomes {
			found[outcome.Name] = outcome
		}
		return found, time.Since(began)
	}
	plain, took := run(t, server.Config)
	each := []filter{withoutWarnings(), withoutLeases(), withoutMetrics(), withoutImpersonation(), withoutAdmissionOfConfigMaps()}
	for name, test := range map[string]struct {
		filters []filter
		flags   map[string]string // of the other server
	}{
		"late configurations":     {filters: []filter{lateConfigurations()}, flags: lateFlags(t, server, lateBy(t))},
		"all":                     {filters: each, flags: map[string]string{"disable-admission-plugins": admissionPlugins}},
		"warnings":                {filters: []filter{withoutWarnings()}},
		"Leases":                  {filters: []filter{withoutLeases()}},
		"metrics":                 {filters: []filter{withoutMetrics()}},
		"impersonation":           {filters: []filter{withoutImpersonation()}},
		"ignored users":           {filters: []filter{ignoringImpersonation()}},
		"admission of ConfigMaps": {filters: []filter{withoutAdmissionOfConfigMaps()}, flags: map[string]string{"disable-admission-plugins": admissionPlugins}},
	} {
		t.Run(name, func(t *testing.T) {
			var other *rest.Config
			if test.flags != nil {
				other = beside(t, server, test.flags)
			}
			config := filtered(t, server.Config, other, test.filters...)
			found, needed := run(t, config)
			wantSameOrReason(t, plain, found)
			if name != "late configurations" && needed > 4*took { // there, each wait takes as long as the delay
				t.Errorf("it took %s, more than four times %s", needed, took)
			}
			if left := everythingOf(t, server.Config); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// An API server that carries out dry-run requests gets none of them but the first, which is in the namespace of the run.
func TestNoDryRun(t *testing.T) {
	t.Parallel()
	server := testserver.OwnServer(t)
	r, err := engine.Run(t.Context(), engine.Options{Scenarios: someScenarios(t), Provider: providers.RESTConfig{Config: filtered(t, server.Config, nil, withoutDryRun())}})
	if !errors.Is(err, target.ErrNoDryRun) || r.Summary.Error != r.Summary.Total {
		t.Errorf("%v: %v; want target.ErrNoDryRun, and no verdicts", r.Summary, err)
	}
	if left := everythingOf(t, server.Config); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// wantSameOrReason fails for each outcome that is neither the one of a complete server nor one that says why there
// is none.
func wantSameOrReason(t *testing.T, plain, found map[string]report.Outcome) {
	t.Helper()
	judged := 0
	for name, outcome := range found {
		switch outcome.Verdict {
		case plain[name].Verdict:
			judged++
		case framework.Unsupported, framework.Inconclusive:
			t.Logf("%s: %s: %s", name, outcome.Verdict, outcome.Reason)
		default:
			t.Errorf("%s: %s, want %s: %s", name, outcome.Verdict, plain[name].Verdict, outcome.Reason)
		}
	}
	t.Logf("%d of %d as on a complete server", judged, len(plain))
	if judged < len(plain)/5 {
		t.Errorf("%d of %d scenarios were judged; want more: the others need what the server lacks", judged, len(plain))
	}
}

// everythingOf returns every object with the label of a run or with a name of a run.
func everythingOf(t *testing.T, admin *rest.Config) []string {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := discoverer.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, resource := range list.APIResources {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			of := version.WithResource(resource.Name)
			objects, err := client.Resource(of).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range objects.Items {
				if _, labelled := one.GetLabels()[apiserver.RunLabel]; labelled || strings.HasPrefix(one.GetName(), "at-") || strings.HasPrefix(one.GetNamespace(), "at-") || one.GroupVersionKind().Kind == "CustomResourceDefinition" {
					left = append(left, resource.Name+" "+one.GetNamespace()+"/"+one.GetName())
				}
			}
		}
	}
	return left
}

// filter takes something away from an API server. Each field can be nil.
type filter struct {
	// answer answers a request that does not reach the API server, or changes one that does. It reports
	// whether it answered.
	answer func(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo) bool
	// response changes a response.
	response func(*http.Response) error
	// discovered changes one resource in discovery, and reports whether it stays.
	discovered func(group string, resource *metav1.APIResource) bool
	// elsewhere reports whether a request goes to the other API server.
	elsewhere func(info *apirequest.RequestInfo) bool
}

// filtered starts a server that forwards requests to an API server through filters, as its administrator.
// Other is the API server for the requests that a filter sends elsewhere.
func filtered(t *testing.T, admin, other *rest.Config, filters ...filter) *rest.Config {
	t.Helper()
	f := &filtering{filters: filters, info: &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}}
	f.main = f.proxy(t, admin)
	if other != nil {
		f.other = f.proxy(t, other)
	}
	server := httptest.NewUnstartedServer(f)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return config
}

type filtering struct {
	filters     []filter
	info        *apirequest.RequestInfoFactory
	main, other http.Handler
}

func (f *filtering) proxy(t *testing.T, to *rest.Config) http.Handler {
	t.Helper()
	address, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: f.modify, ErrorLog: log.New(io.Discard, "", 0),
	}
}

func (f *filtering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := f.info.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if !info.IsResourceRequest && r.Method == http.MethodGet {
		r.Header.Del("Accept-Encoding")
		if strings.HasPrefix(r.URL.Path, "/api") {
			r.Header.Set("Accept", "application/json") // no aggregated discovery
		}
	}
	to := f.main
	for _, one := range f.filters {
		if one.answer != nil && one.answer(w, r, info) {
			return
		}
		if one.elsewhere != nil && one.elsewhere(info) {
			to = f.other
		}
	}
	to.ServeHTTP(w, r)
}

// modify changes a response.
func (f *filtering) modify(response *http.Response) error {
	for _, one := range f.filters {
		if one.response != nil {
			if err := one.response(response); err != nil {
				return err
			}
		}
	}
	path := response.Request.URL.Path
	if response.StatusCode != http.StatusOK || path != "/api/v1" && (!strings.HasPrefix(path, "/apis/") || strings.Count(path, "/") != 3) {
		return nil
	}
	var list metav1.APIResourceList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return err
	}
	_ = response.Body.Close()
	group, _, found := strings.Cut(list.GroupVersion, "/")
	if !found {
		group = ""
	}
	list.APIResources = slices.DeleteFunc(list.APIResources, func(resource metav1.APIResource) bool {
		return slices.ContainsFunc(f.filters, func(one filter) bool { return one.discovered != nil && !one.discovered(group, &resource) })
	})
	if slices.ContainsFunc(f.filters, func(one filter) bool { return one.discovered != nil }) {
		for i := range list.APIResources {
			for _, one := range f.filters {
				if one.discovered != nil {
					one.discovered(group, &list.APIResources[i])
				}
			}
		}
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", fmt.Sprint(len(body)))
	response.Header.Set("Content-Type", "application/json")
	return nil
}

// respondStatus answers a request with a Status.
func respondStatus(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) bool {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(status)
	return true
}

// withoutWarnings removes the warnings from responses.
func withoutWarnings() filter {
	return filter{response: func(response *http.Response) error {
		response.Header.Del("Warning")
		return nil
	}}
}

// withoutLeases serves no Leases.
func withoutLeases() filter {
	return filter{
		answer: func(w http.ResponseWriter, _ *http.Request, info *apirequest.RequestInfo) bool {
			return info.Resource == "leases" && respondStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		},
		discovered: func(_ string, resource *metav1.APIResource) bool { return resource.Name != "leases" },
	}
}

// withoutDryRun carries out dry-run requests.
func withoutDryRun() filter {
	return filter{answer: func(_ http.ResponseWriter, r *http.Request, _ *apirequest.RequestInfo) bool {
		query := r.URL.Query()
		query.Del("dryRun")
		r.URL.RawQuery = query.Encode()
		return false
	}}
}

// withoutMetrics has no metrics.
func withoutMetrics() filter {
	return filter{answer: func(w http.ResponseWriter, r *http.Request, _ *apirequest.RequestInfo) bool {
		return r.URL.Path == "/metrics" && respondStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, "404 page not found")
	}}
}

func impersonates(r *http.Request) bool { return r.Header.Get("Impersonate-User") != "" }

// withoutImpersonation refuses to impersonate.
func withoutImpersonation() filter {
	return filter{answer: func(w http.ResponseWriter, r *http.Request, _ *apirequest.RequestInfo) bool {
		return impersonates(r) && respondStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden, "impersonation is not allowed")
	}}
}

// ignoringImpersonation carries out requests as the user itself.
func ignoringImpersonation() filter {
	return filter{answer: func(_ http.ResponseWriter, r *http.Request, _ *apirequest.RequestInfo) bool {
		for name := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") {
				r.Header.Del(name)
			}
		}
		return false
	}}
}

// lateConfigurations sends all but the writes of webhook configurations and policies to the other API server, which
// learns of them late.
func lateConfigurations() filter {
	return filter{elsewhere: func(info *apirequest.RequestInfo) bool { return info.APIGroup != install.AdmissionGroup }}
}

// lateFlags are the flags of an API server with the storage of another one, which learns of webhook configurations and
// policies late: the events of its watches in etcd arrive after a delay.
func lateFlags(t *testing.T, server *envtest.Server, delay time.Duration) map[string]string {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	socket := server.Environment.ControlPlane.Etcd.URL.Path
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Protocols: &protocols, ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "etcd"}) },
		FlushInterval: -1, Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: func(response *http.Response) error {
			if strings.HasPrefix(response.Request.URL.Path, "/etcdserverpb.Watch/") {
				response.Body = newLate(response.Body, delay)
			}
			return nil
		},
	}}
	go func() { _ = proxy.Serve(listener) }()
	t.Cleanup(func() { _ = proxy.Close() })
	var overrides []string
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
		overrides = append(overrides, install.AdmissionGroup+"/"+resource+"#http://"+listener.Addr().String())
	}
	return map[string]string{"etcd-servers-overrides": strings.Join(overrides, ",")}
}

// late is a stream that arrives after a delay.
type late struct {
	io.Closer
	parts chan latePart
	rest  []byte
}

type latePart struct {
	data []byte
	at   time.Time
}

func newLate(body io.ReadCloser, delay time.Duration) *late {
	l := &late{Closer: body, parts: make(chan latePart, 1<<16)}
	go func() {
		defer close(l.parts)
		for {
			part := make([]byte, 64<<10)
			n, err := body.Read(part)
			l.parts <- latePart{part[:n], time.Now().Add(delay)}
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *late) Read(into []byte) (int, error) {
	if len(l.rest) == 0 {
		part, open := <-l.parts
		if !open {
			return 0, io.EOF
		}
		timer := time.NewTimer(time.Until(part.at))
		<-timer.C
		l.rest = part.data
	}
	n := copy(into, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// withoutAdmissionOfConfigMaps sends requests for ConfigMaps to the other API server.
func withoutAdmissionOfConfigMaps() filter {
	return filter{elsewhere: func(info *apirequest.RequestInfo) bool { return info.APIGroup == "" && info.Resource == "configmaps" }}
}
