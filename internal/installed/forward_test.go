package installed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
)

// pods is an API server that has a Service with one Pod, or five, and forwards ports of the Pod to an address.
type pods struct {
	at        string // where the Pod listens; empty means that the connection is refused
	forbidden bool
	five      bool
	upgrades  atomic.Int64

	mu         sync.Mutex
	connection httpstream.Connection
}

// ServeHTTP implements http.Handler.
func (p *pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, port, ready := "https", int32(9443), true
	switch {
	case strings.HasSuffix(r.URL.Path, "/portforward") && p.forbidden:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden, Message: `pods "guard-1" is forbidden: User "jane" cannot create resource "pods/portforward"`})
	case strings.HasSuffix(r.URL.Path, "/portforward") && !strings.HasSuffix(r.URL.Path, "/pods/guard-0/portforward"):
		p.forward(w, r)
	case strings.HasSuffix(r.URL.Path, "/services/guard"):
		answer(w, corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "metrics", Port: 80}, {Name: name, Port: 443}}}})
	case strings.HasSuffix(r.URL.Path, "/endpointslices"):
		no := false
		other, otherPort := "metrics", int32(8080)
		one := func(name string) discoveryv1.Endpoint {
			return discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name}}
		}
		endpoints := []discoveryv1.Endpoint{one("guard-1"), one("guard-1")} // with both of its addresses
		for n := 2; p.five && n <= 5; n++ {
			endpoints = append(endpoints, one(fmt.Sprintf("guard-%d", n)))
		}
		answer(w, discoveryv1.EndpointSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"}, Items: []discoveryv1.EndpointSlice{{
			Ports:     []discoveryv1.EndpointPort{{Name: &other, Port: &otherPort}, {Name: &name, Port: &port}},
			Endpoints: append([]discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &no}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "guard-0"}}}, endpoints...),
		}}})
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// forward forwards ports as a kubelet does.
func (p *pods) forward(w http.ResponseWriter, r *http.Request) {
	p.upgrades.Add(1)
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	problems := map[string]httpstream.Stream{}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			problems[id] = stream
			return nil
		}
		go p.carry(stream, problems[id], replied)
		return nil
	})
	if connection == nil {
		return
	}
	p.mu.Lock()
	p.connection = connection
	p.mu.Unlock()
	<-connection.CloseChan()
}

func (p *pods) carry(data, problem httpstream.Stream, replied <-chan struct{}) {
	<-replied
	defer problem.Close()
	defer data.Close()
	if data.Headers().Get(corev1.PortHeader) != strconv.Itoa(9443) || p.at == "" {
		_, _ = io.WriteString(problem, "dial tcp4 127.0.0.1:9443: connect: connection refused")
		return
	}
	pod, err := net.Dial("tcp", p.at)
	if err != nil {
		return
	}
	defer pod.Close()
	go func() {
		_, _ = io.Copy(pod, data)
		_ = pod.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(data, pod)
}

// cut ends the connection, as a restart of the API server does.
func (p *pods) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.connection.Close()
}

func backendOf(t *testing.T, p *pods) *Backend {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	port := int32(443)
	return &Backend{config: &rest.Config{Host: server.URL}, service: admissionregistrationv1.ServiceReference{Namespace: "system", Name: "guard", Port: &port}}
}

// get sends a request over a connection of its own.
func get(ctx context.Context, address string) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(address, "https"), nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// TestForward: connections go to the ready Pod and the port that the Service leads to, many at the same time, and again after the
// connection to the API server ended. They end with the context.
func TestForward(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100_000)) }))
	defer pod.Close()
	p := &pods{at: pod.Listener.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addresses, err := backendOf(t, p).Forward(ctx)
	if err != nil || len(addresses) != 1 {
		t.Fatalf("got %q, %v; want one address", addresses, err)
	}
	address := addresses[0]
	for range 2 {
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if body, err := get(ctx, address); err != nil || len(body) != 100_000 {
					t.Errorf("got %d bytes, %v", len(body), err)
				}
			})
		}
		calls.Wait()
		p.cut()
		// A call can be lost until the end of the connection arrives here.
		for ended := p.upgrades.Load(); p.upgrades.Load() == ended && t.Context().Err() == nil; {
			_, _ = get(ctx, address)
		}
	}
	if n := p.upgrades.Load(); n > 3 {
		t.Errorf("%d connections to the API server; want one after each end", n)
	}
	cancel()
	for {
		if _, err := get(t.Context(), address); err != nil {
			break
		}
	}
}

// TestForwardReplicas: three Pods of five are called, each once.
func TestForwardReplicas(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	defer pod.Close()
	addresses, err := backendOf(t, &pods{at: pod.Listener.Addr().String(), five: true}).Forward(t.Context())
	if err != nil || len(addresses) != mostReplicas {
		t.Fatalf("got %q, %v; want %d addresses", addresses, err, mostReplicas)
	}
	for _, each := range addresses {
		if body, err := get(t.Context(), each); err != nil || body != "here" {
			t.Errorf("%s: got %q, %v", each, body, err)
		}
	}
}

// TestForwardFails: what is in the way is said.
func TestForwardFails(t *testing.T) {
	refused := backendOf(t, &pods{})
	if _, err := refused.Forward(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "forward port 9443 of pod system/guard-1") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want that port 9443 of the Pod refuses the connection", err)
	}
	if _, err := backendOf(t, &pods{forbidden: true}).Forward(t.Context()); !errors.Is(err, ErrRight) || !strings.Contains(err.Error(), "pods/portforward") {
		t.Errorf("got %v, want the right that lacks", err)
	}
	port := int32(8443)
	refused.service.Port = &port
	if _, err := refused.Forward(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "Service system/guard has no port 8443") {
		t.Errorf("got %v, want that the Service has no such port", err)
	}
}
