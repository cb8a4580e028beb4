package envtest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// laggard is one more API server of a cluster, at an address of its own: the same
// one seen through a proxy, which keeps back what sentinels leave on answers until
// it has caught up.
type laggard struct {
	address net.Addr
	behind  atomic.Bool
	asked   atomic.Int64
	// strangers are requests of the client that knows of no other API server. It is told
	// apart by name: answers to canceled requests of the other come in late.
	strangers atomic.Int64
}

// stranger is the user agent of the client that knows of no other API server.
const stranger = "knows-of-no-other"

// outward returns an address of this machine that is no loopback, of which
// EndpointSlices can have none.
func outward(t *testing.T) string {
	t.Helper()
	found, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		if address, ok := one.(*net.IPNet); ok && address.IP.To4() != nil && !address.IP.IsLoopback() && !address.IP.IsLinkLocalUnicast() {
			return address.IP.String()
		}
	}
	t.Skip("this machine has no IPv4 address but loopback, which EndpointSlices cannot have")
	return ""
}

// startLaggard starts one, and has config trust its certificate.
func startLaggard(t *testing.T, config *rest.Config) *laggard {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	l := &laggard{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			if response.Request.UserAgent() == stranger {
				l.strangers.Add(1)
			}
			if response.Request.URL.Query().Get("dryRun") != "" {
				l.asked.Add(1)
				if l.behind.Load() {
					response.Header.Del("Warning")
				}
			}
			return nil
		},
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(outward(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(proxy)
	_ = server.Listener.Close()
	server.Listener, l.address = listener, listener.Addr()
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificateFor(t, "kubernetes.default.svc")}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.TLS.Certificates[0].Certificate[0]})
	config.CAData = append(append([]byte{}, config.CAData...), own...)
	return l
}

// slice makes an address one of the API servers'.
func slice(name, host string, port int) map[string]any {
	return map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata":    map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"kubernetes.io/service-name": "kubernetes"}},
		"addressType": "IPv4", "ports": []any{map[string]any{"name": "https", "port": int64(port)}},
		"endpoints": []any{map[string]any{"addresses": []any{host}}},
	}
}

// Of several API servers the fence waits for each that can be asked.
func TestReplicas(t *testing.T) {
	server := start(t)
	config := rest.CopyConfig(server.Config)
	late, prompt := startLaggard(t, config), startLaggard(t, config)
	alone := rest.CopyConfig(server.Config)
	alone.UserAgent = stranger
	admin := target(t, alone, "admin")
	for name, l := range map[string]*laggard{"late": late, "prompt": prompt} {
		at := l.address.(*net.TCPAddr)
		apply(t, admin, slice(name, at.IP.String(), at.Port))
	}
	apply(t, admin, slice("gone", outward(t), 1))

	var mu sync.Mutex
	var told []string
	on, err := cluster.New(t.Context(), cluster.Options{Config: config, Progress: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(told, "\n")
	if strings.Count(lines, "cannot be asked from here") != strings.Count(lines, "API server ") || !strings.Contains(lines, ":1 is one of") {
		t.Errorf("told %q; want the one address where nobody answers", lines)
	}
	manifest := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
	late.behind.Store(true)
	settled := make(chan error, 1)
	go func() { settled <- on.Settle(t.Context(), []map[string]any{manifest}) }()
	deadline := time.After(20 * time.Second)
	for late.asked.Load() < 20 {
		select {
		case err := <-settled:
			t.Fatalf("the fence opened (%v) though one API server was behind, asked %d times", err, late.asked.Load())
		case <-deadline:
			t.Fatalf("the API server that is behind was asked %d times", late.asked.Load())
		case <-time.After(time.Millisecond):
		}
	}
	late.behind.Store(false)
	if err := <-settled; err != nil {
		t.Error(err)
	}
	if prompt.asked.Load() == 0 {
		t.Error("one of two was not asked")
	}

	// Must fail: who never catches up is told of by address.
	late.behind.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err = on.Settle(ctx, []map[string]any{manifest})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "on API server "+late.address.String()) {
		t.Errorf("settle = %v; want that it takes too long, with the address", err)
	}

	// One that knows of no other asks nobody else.
	if err := admin.Settle(t.Context(), []map[string]any{manifest}); err != nil {
		t.Error(err)
	}
	if asked := late.strangers.Load() + prompt.strangers.Load(); asked != 0 {
		t.Errorf("%d requests to others; want none", asked)
	}
	// Must fail: it is known by its name.
	aside := rest.CopyConfig(config)
	aside.Host, aside.UserAgent = "https://"+late.address.String(), stranger
	aside.ServerName = "kubernetes.default.svc"
	client, err := rest.HTTPClientFor(aside)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(aside.Host + "/version")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if late.strangers.Load() != 1 {
		t.Error("a request under this name is not counted")
	}
}

// apply creates an object as it is.
func apply(t *testing.T, on *cluster.Target, manifest map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: manifest}
	got := do(t, on, framework.Request{Verb: framework.VerbCreate, Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Object: object})
	if !got.Allowed() {
		t.Fatalf("create %s: %s", object.GetName(), got.Status.Message)
	}
}

// certificateFor is a certificate that signs itself.
func certificateFor(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, Subject: pkix.Name{CommonName: rand.Text()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
