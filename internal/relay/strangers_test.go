package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/port"
	"github.com/admissiontest/admissiontest/internal/relay/tunnel"
)

// tunnelled returns a Service whose relay is in this process, and the addresses of the relay.
func tunnelled(t *testing.T) (*Service, []*net.TCPAddr) {
	t.Helper()
	hooks, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hooks.Close() })
	s := &Service{options: Options{Hooks: hooks}}
	if s.listeners, err = hooks.Listeners(); err != nil {
		t.Fatal(err)
	}
	token := strings.Repeat("t", tunnel.TokenSize)
	relay, err := tunnel.Listen(tunnel.Options{Token: token, Control: "127.0.0.1:0", Ports: []string{"127.0.0.1:" + strconv.Itoa(firstPodPort)}})
	if err != nil {
		t.Skipf("port %d of a relay is not free here: %v", firstPodPort, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() { ran <- relay.Run(ctx) }()
	channel, err := new(net.Dialer).DialContext(ctx, "tcp", relay.Control().String())
	if err == nil {
		err = tunnel.Greet(ctx, channel, token)
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- tunnel.Serve(ctx, channel, tunnel.Hooks{Dial: s.dialHooks, Lost: s.noteLost}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("run the relay: %v", err)
		}
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("serve the channel: %v, want %v", err, context.Canceled)
		}
	})
	return s, relay.Addresses()
}

// Connections of other clients to the relay are closed by the Hook server, behind it: an API server can still connect.
func TestStrangersAtTheRelay(t *testing.T) {
	s, addresses := tunnelled(t)
	hooks, address := s.options.Hooks, addresses[0].String()
	endpoint, err := hooks.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating})
	if err != nil {
		t.Fatal(err)
	}
	call := func() int {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(endpoint.CABundle)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}}
		defer client.CloseIdleConnections()
		body := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}`)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+endpoint.Path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := call(); got != http.StatusOK {
		t.Fatalf("got %d before others connect", got)
	}
	for range port.NewStrangers(port.Most).Limit() + 100 {
		stranger, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if errors.Is(err, syscall.EMFILE) {
			t.Skip("this process can only open few files")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
	}
	if got := call(); got != http.StatusOK {
		t.Errorf("got %d beside many connections, want 200", got)
	}
	if hooks.Strangers().Closed == 0 {
		t.Error("no connection was closed")
	}
}

// What the relay loses is known here.
func TestLostConnections(t *testing.T) {
	s := &Service{}
	for _, count := range []int{0, 3, 3, 1} { // another pod begins again
		s.noteLost(count)
	}
	if got := s.LostConnections(); got != 2 {
		t.Errorf("got %d changes, want 2", got)
	}
	s.listeners = []hook.Listener{{Address: "127.0.0.1:1"}}
	if _, err := s.dialHooks(t.Context(), firstPodPort); err == nil || s.LostConnections() != 3 {
		t.Errorf("after %v: got %d, want 3: a connection could not be dialled", err, s.LostConnections())
	}
}
