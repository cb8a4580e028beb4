package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/target"
)

// adminToken is the token of the administrator of both API servers.
const adminToken = "administrator-of-both"

// unreachable is an address at which nothing listens (RFC 5737): nothing is sent to the addresses of EndpointSlices.
const unreachable = "198.51.100.1"

// replicated is two API servers with one storage, behind a load balancer that chooses the other one for each request.
type replicated struct {
	config           *rest.Config // of the load balancer
	certificate, key []byte
	first, second    *envtest.Server
	behind           [2]http.Handler
	requests         atomic.Int64
	// down is true when the second API server has ended, and removed when the load balancer knows that.
	down, removed atomic.Bool
}

// serviceName is the name for which each API server of a cluster has a certificate.
const serviceName = "kubernetes.default.svc"

// newReplicated starts both. The second learns of webhook configurations and policies after a delay.
func newReplicated(t *testing.T, delay time.Duration) *replicated {
	t.Helper()
	r := &replicated{}
	var err error
	if r.certificate, r.key, err = certutil.GenerateSelfSignedCertKey(serviceName, nil, nil); err != nil {
		t.Fatal(err)
	}
	r.first = r.start(t, map[string]string{})
	flags := lateFlags(t, r.first, delay)
	flags["etcd-servers"] = "unix://" + r.first.Environment.ControlPlane.Etcd.URL.Path
	r.second = r.start(t, flags)
	r.behind = [2]http.Handler{proxyTo(t, r.first.Config), proxyTo(t, r.second.Config)}
	r.config = answering(t, r)
	r.config.BearerToken, r.config.CAData = adminToken, append(r.config.CAData, r.certificate...)
	return r
}

// start starts an API server that can be reached at the addresses of this machine.
func (r *replicated) start(t *testing.T, flags map[string]string) *envtest.Server {
	t.Helper()
	flags["bind-address"], flags["token-auth-file"] = "0.0.0.0", "$(files)/tokens.csv"
	flags["tls-sni-cert-key"] = "$(files)/sni.crt,$(files)/sni.key:" + serviceName
	server, err := envtest.Start(t.Context(), envtest.Options{Profile: envtest.Profile{Flags: flags, Files: map[string]string{
		"tokens.csv": adminToken + ",admin,,system:masters\n", "sni.crt": string(r.certificate), "sni.key": string(r.key),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// ServeHTTP sends a request to one of the API servers. For one that has ended it answers 502, or closes the
// connection.
func (r *replicated) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	n := r.requests.Add(1)
	switch {
	case n%2 == 0 || r.removed.Load():
		r.behind[0].ServeHTTP(w, request)
	case r.down.Load() && n%4 == 1:
		http.Error(w, "bad gateway", http.StatusBadGateway)
	default:
		r.behind[1].ServeHTTP(w, request)
	}
}

// list writes an EndpointSlice for each. The returned function deletes the one of a name.
func (r *replicated) list(t *testing.T) (unlist func(name string)) {
	t.Helper()
	client, err := kubernetes.NewForConfig(r.first.Config)
	if err != nil {
		t.Fatal(err)
	}
	slices := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	for name, server := range map[string]*envtest.Server{"first": r.first, "second": r.second} {
		_, text, _ := strings.Cut(strings.TrimPrefix(server.Config.Host, "https://"), ":")
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		_, err = slices.Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(port))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{unreachable}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) {
		if err := slices.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// fewScenarios returns scenarios about the order of calls, and about changes of configurations in mid-scenario.
func fewScenarios(t *testing.T) []scenario.Scenario {
	t.Helper()
	selected, err := engine.Select(catalogue(t), []string{"order", "vap.come-and-go", "vap.params-changed"}, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	// It is about a namespace that ends. The fence is about configurations: an API server that cannot be reached can know
	// later that the namespace ends (docs/running.md).
	return slices.DeleteFunc(selected, func(s scenario.Scenario) bool { return s.Metadata.Name == "order.plugins.namespace-lifecycle-first" })
}

// run runs the scenarios, and returns how many were judged and the wrong verdicts: all scenarios pass on one server.
func (r *replicated) run(t *testing.T, progress engine.Progress) (judged int, wrong []string, err error) {
	t.Helper()
	out, err := engine.Run(t.Context(), engine.Options{Scenarios: fewScenarios(t), Progress: progress, Provider: providers.RESTConfig{
		Config: r.config, Progress: func(line string) { t.Log(line) },
	}})
	for _, outcome := range out.Outcomes {
		switch {
		case outcome.Verdict == framework.Pass:
			judged++
		case outcome.Verdict == framework.Inconclusive, outcome.Verdict == framework.Unsupported, outcome.Verdict == framework.Errored && outcome.NotReached:
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason))
		}
	}
	t.Logf("%s, %d wrong: %v", out.Summary, len(wrong), err)
	return judged, wrong, err
}

// lateSecond is the delay of the second API server, and notice the time until the load balancer and the EndpointSlices
// know of its end.
const (
	lateSecond = 300 * time.Millisecond
	notice     = 3 * time.Second
)

// mostJudged is how many of fewScenarios are judged if no API server ends: the others need a capability that these lack.
const mostJudged = 18

// Two API servers behind a load balancer act on the configurations of a scenario before it runs. The environment variable ADMISSIONTEST_REPLICAS is how often each is tested.
func TestReplicas(t *testing.T) {
	r := newReplicated(t, lateSecond)
	// Must fail: a run that does not know of the second API server.
	late, err := false, error(nil)
	for n := 0; n < 5 && !late && err == nil; n++ { // on a busy machine a run can be as late as the second API server
		var wrong []string
		_, wrong, err = r.run(t, nil)
		late = len(wrong) > 0
	}
	if !late || err != nil {
		t.Errorf("no wrong verdict without EndpointSlices (%v): the second API server is not late", err)
	}
	unlist := r.list(t)
	defer unlist("first")
	defer unlist("second")
	for range times(t) {
		if judged, wrong, err := r.run(t, nil); err != nil || len(wrong) > 0 || judged < mostJudged {
			t.Errorf("%d judged, wrong: %s: %v", judged, strings.Join(wrong, "\n"), err)
		}
	}
}

// times is how often a test runs the scenarios.
func times(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ADMISSIONTEST_REPLICAS"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// An API server that ends in mid-run is no verdict: the run goes on with the other one, or ends.
func TestReplicaEnds(t *testing.T) {
	for i := range (times(t) + 1) / 2 {
		r := newReplicated(t, lateSecond)
		unlist := r.list(t)
		noticed := make(chan struct{})
		end := sync.OnceFunc(func() {
			r.down.Store(true)
			if err := r.second.Stop(); err != nil {
				t.Error(err)
			}
			time.AfterFunc(notice, func() {
				r.removed.Store(true)
				unlist("second")
				close(noticed)
			})
		})
		judged, wrong, err := r.run(t, onPass(end))
		if len(wrong) > 0 || err != nil && !errors.Is(err, target.ErrGone) || err == nil && judged < mostJudged {
			t.Errorf("run %d: %d judged, wrong: %s: %v", i, judged, strings.Join(wrong, "\n"), err)
		}
		<-noticed
	}
}
