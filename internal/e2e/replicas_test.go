package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/ready"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
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

// ServeHTTP sends a request to one of the API servers.
func (r *replicated) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.behind[r.requests.Add(1)%2].ServeHTTP(w, request)
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
func (r *replicated) run(t *testing.T) (judged int, wrong []string, err error) {
	t.Helper()
	out, err := engine.Run(t.Context(), engine.Options{Scenarios: fewScenarios(t), Provider: providers.RESTConfig{
		Config: r.config, Progress: func(line string) { t.Log(line) },
	}})
	for _, outcome := range out.Outcomes {
		switch outcome.Verdict {
		case framework.Pass:
			judged++
		case framework.Inconclusive, framework.Unsupported:
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason))
		}
	}
	t.Logf("%s, %d wrong: %v", out.Summary, len(wrong), err)
	return judged, wrong, err
}

// lateSecond is the delay of the second API server.
const lateSecond = 300 * time.Millisecond

// mostJudged is how many of fewScenarios are judged: the others need a capability that these lack.
const mostJudged = 18

// Two API servers behind a load balancer act on the configurations of a scenario before it runs. The environment variable ADMISSIONTEST_REPLICAS is how often each is tested.
func TestReplicas(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, lateSecond)
	// Must fail: a run that does not know of the second API server.
	late, err := false, error(nil)
	for n := 0; n < 5 && !late && err == nil; n++ { // on a busy machine a run can be as late as the second API server
		var wrong []string
		_, wrong, err = r.run(t)
		late = len(wrong) > 0
	}
	if !late || err != nil {
		t.Errorf("no wrong verdict without EndpointSlices (%v): the second API server is not late", err)
	}
	unlist := r.list(t)
	defer unlist("first")
	defer unlist("second")
	times, err := strconv.Atoi(cmp.Or(os.Getenv("ADMISSIONTEST_REPLICAS"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		if judged, wrong, err := r.run(t); err != nil || len(wrong) > 0 || judged < mostJudged {
			t.Errorf("%d judged, wrong: %s: %v", judged, strings.Join(wrong, "\n"), err)
		}
	}
}

// balanced returns the configuration of a load balancer that chooses the other API server for each connection, after two to the first
// one: the second waits with the response to a list until it knows what is listed.
func (r *replicated) balanced(t *testing.T) *rest.Config {
	t.Helper()
	var connections atomic.Int64
	config := &rest.Config{Host: "https://" + serviceName, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{CAData: r.certificate}}
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		to := r.first
		if n := connections.Add(1); n > 2 && n%2 == 0 {
			to = r.second
		}
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(to.Config.Host, "https://"))
	}
	return config
}

// After ready.Wait, no request to one of two API servers gets past a policy, also if the second one learns of it late.
func TestReplicasReady(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 10*lateSecond)
	unlist := r.list(t)
	defer unlist("first")
	defer unlist("second")
	config := r.balanced(t)
	client := kubernetes.NewForConfigOrDie(config)
	var err error
	for resource, object := range map[string]string{
		"validatingadmissionpolicies":       `{"spec": {"validations": [{"expression": "false"}], "matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}}, "metadata": {"name": "none"}}`,
		"validatingadmissionpolicybindings": `{"spec": {"policyName": "none", "validationActions": ["Deny"]}, "metadata": {"name": "none"}}`,
	} {
		err = errors.Join(err, client.AdmissionregistrationV1().RESTClient().Post().Resource(resource).Body([]byte(object)).Do(t.Context()).Error())
	}
	if err = errors.Join(err, ready.Wait(t.Context(), config, ready.Options{Policies: []string{"none"}})); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		each := rest.CopyConfig(config)
		each.Dial = func(ctx context.Context, network, address string) (net.Conn, error) { // clients with the same function share connections
			return config.Dial(ctx, network, address)
		}
		if _, err := kubernetes.NewForConfigOrDie(each).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", n)}}, metav1.CreateOptions{}); err == nil {
			t.Fatalf("request %d after Wait was accepted", n)
		}
	}
}
