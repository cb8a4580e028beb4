package fence

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
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

// balancer is the address of a cluster with two API servers, of which every third request gets to the second one. While
// that is late, the balancer removes the warnings of the sentinels from its responses.
type balancer struct {
	late           atomic.Bool
	requests, lost atomic.Int64
}

// startBalancer starts a balancer, and returns the configuration for it.
func startBalancer(t *testing.T) (*balancer, *rest.Config) {
	t.Helper()
	config := testserver.Config(t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{}
	server := httptest.NewTLSServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			if response.Request.URL.Query().Get("dryRun") != "" && b.requests.Add(1)%3 == 0 && b.late.Load() {
				b.lost.Add(1)
				response.Header.Del("Warning")
			}
			return nil
		},
	})
	t.Cleanup(server.Close)
	return b, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// createSlice makes two addresses API servers.
func createSlice(t *testing.T, c *client.Client) {
	t.Helper()
	res := client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, Namespaced: true}
	one := client.Object{Resource: res, Namespace: "default", Name: "two"}
	_, err := c.Create(t.Context(), one, map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata":    map[string]any{"name": "two", "labels": map[string]any{"kubernetes.io/service-name": "kubernetes"}},
		"addressType": "IPv4", "ports": []any{map[string]any{"name": "https", "port": int64(1)}},
		"endpoints": []any{map[string]any{"addresses": []any{address(t)}}, map[string]any{"addresses": []any{net.IPv4(198, 51, 100, 1).String()}}},
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

// The fence waits for each API server behind a load balancer.
func TestReplicas(t *testing.T) {
	b, config := startBalancer(t)
	aware := fences(t, "aware", config, hook.Options{})
	createSlice(t, aware.Client)
	if message := aware.Client.FindReplicas(t.Context()); !strings.Contains(message, "API servers") {
		t.Errorf("message %q", message)
	}
	b.late.Store(true)
	waited := make(chan error, 1)
	go func() { waited <- aware.Wait(t.Context(), Kinds{ValidatingWebhooks: true}) }()
	err := client.Poll(t.Context(), client.Soon, 20*time.Second, func() (bool, error) {
		select {
		case err := <-waited:
			return false, errors.Join(errors.New("the fence opened while an API server was late"), err)
		default:
			return b.lost.Load() >= 10, nil
		}
	})
	if err != nil {
		t.Fatalf("%v, after %d requests", err, b.requests.Load())
	}
	b.late.Store(false)
	if err := <-waited; err != nil {
		t.Error(err)
	}

	// Must fail: an API server that stays late.
	b.late.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := aware.Wait(ctx, Kinds{ValidatingWebhooks: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want a timeout", err)
	}
}

// address returns an IPv4 address of this machine that an EndpointSlice can have: not a loopback address. Without
// one, the test is skipped.
func address(t *testing.T) string {
	t.Helper()
	found, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr().String()
		}
	}
	t.Skip("this machine has only loopback addresses of IPv4, which EndpointSlices cannot have")
	return ""
}
