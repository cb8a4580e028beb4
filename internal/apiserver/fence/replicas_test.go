package fence

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// lateServer is another API server of a cluster, with its own address: a proxy for the
// real one. While it is late, it removes the warnings of the sentinels.
type lateServer struct {
	address  net.Addr
	late     atomic.Bool
	requests atomic.Int64
	// unaware counts the requests of the client that does not know of other API servers.
	unaware atomic.Int64
}

// unawareAgent is the user agent of that client. (Responses to cancelled requests of the
// other client can still arrive.)
const unawareAgent = "does-not-know-of-others"

// startLate starts a lateServer and makes config trust its certificate.
func startLate(t *testing.T, config *rest.Config) *lateServer {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	l := &lateServer{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			if response.Request.UserAgent() == unawareAgent {
				l.unaware.Add(1)
			}
			if response.Request.URL.Query().Get("dryRun") != "" {
				l.requests.Add(1)
				if l.late.Load() {
					response.Header.Del("Warning")
				}
			}
			return nil
		},
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(testserver.Address(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(proxy)
	_ = server.Listener.Close()
	server.Listener, l.address = listener, listener.Addr()
	certificate, key := testserver.Certificate(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	config.CAData = append(append([]byte{}, config.CAData...), certificate...)
	return l
}

// createSlice makes an address one of the API servers.
func createSlice(t *testing.T, c *client.Client, name, host string, port int) {
	t.Helper()
	res := client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, Namespaced: true}
	one := client.Object{Resource: res, Namespace: "default", Name: name}
	_, err := c.Create(t.Context(), one, map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata":    map[string]any{"name": name, "labels": map[string]any{"kubernetes.io/service-name": "kubernetes"}},
		"addressType": "IPv4", "ports": []any{map[string]any{"name": "https", "port": int64(port)}},
		"endpoints": []any{map[string]any{"addresses": []any{host}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), one); err != nil {
			t.Error(err)
		}
	})
}

// The fence waits for each API server that can be reached.
func TestReplicas(t *testing.T) {
	config := testserver.Config(t)
	late, prompt := startLate(t, config), startLate(t, config)
	single := testserver.Config(t)
	single.UserAgent = unawareAgent
	unaware := fences(t, "unaware", single, hook.Options{})
	for name, one := range map[string]*lateServer{"late": late, "prompt": prompt} {
		address := one.address.(*net.TCPAddr)
		createSlice(t, unaware.Client, name, address.IP.String(), address.Port)
	}
	createSlice(t, unaware.Client, "gone", testserver.Address(t), 1)

	aware := fences(t, "aware", config, hook.Options{})
	warnings := strings.Join(aware.Client.FindReplicas(t.Context()), "\n")
	if strings.Count(warnings, "cannot reach API server") != strings.Count(warnings, ", one of") || !strings.Contains(warnings, ":1, one of") {
		t.Errorf("warnings %q; want one for the address that does not respond", warnings)
	}
	late.late.Store(true)
	waited := make(chan error, 1)
	go func() { waited <- aware.Wait(t.Context(), Kinds{ValidatingWebhooks: true}) }()
	err := client.Poll(t.Context(), client.Soon, 20*time.Second, func() (bool, error) {
		select {
		case err := <-waited:
			return false, errors.Join(errors.New("the fence opened while an API server was late"), err)
		default:
			return late.requests.Load() >= 20, nil
		}
	})
	if err != nil {
		t.Fatalf("%v, after %d requests", err, late.requests.Load())
	}
	late.late.Store(false)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if prompt.requests.Load() == 0 {
		t.Error("one of the two API servers got no request")
	}

	// Must fail: an API server that stays late is named in the error.
	late.late.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err = aware.Wait(ctx, Kinds{ValidatingWebhooks: true})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "on API server "+late.address.String()) {
		t.Errorf("got %v; want a timeout with the address", err)
	}

	// A client that did not look for replicas sends only to its own address.
	if err := unaware.Wait(t.Context(), Kinds{ValidatingWebhooks: true}); err != nil {
		t.Error(err)
	}
	if got := late.unaware.Load() + prompt.unaware.Load(); got != 0 {
		t.Errorf("%d requests to other API servers; want none", got)
	}
	// Must fail: such a request would be counted.
	direct := rest.CopyConfig(config)
	direct.Host, direct.UserAgent, direct.ServerName = "https://"+late.address.String(), unawareAgent, "kubernetes.default.svc"
	counted, err := client.New(direct)
	if err != nil {
		t.Fatal(err)
	}
	if err := counted.Ping(t.Context()); err != nil || late.unaware.Load() != 1 {
		t.Errorf("ping %v, %d requests counted; want one", err, late.unaware.Load())
	}
}
