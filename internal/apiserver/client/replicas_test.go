package client

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// startReplica starts a server whose certificate is valid for an API server of a cluster, and returns that too.
func startReplica(t *testing.T, answer http.HandlerFunc) (*server, []byte) {
	t.Helper()
	certificate, key := testserver.Certificate(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		answer(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, certificate
}

// The requests go to one replica, whatever the load balancer does; to the other one when it ends; and
// to the load balancer when both have ended, which SendToAll then asks on new connections.
func TestReplicasEnd(t *testing.T) {
	first, firstCA := startReplica(t, answerVersion)
	second, secondCA := startReplica(t, answerVersion)
	if first.URL > second.URL { // the order in which they are chosen
		first, second = second, first
	}
	balancer := withSlices(t, first, second)
	var mu sync.Mutex
	connections := map[string]bool{}
	answer := balancer.Config.Handler
	balancer.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.RemoteAddr] = true
		mu.Unlock()
		answer.ServeHTTP(w, r)
	})
	c, err := New(&rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: append(append(balancer.ca(), firstCA...), secondCA...)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if unreachable := c.FindReplicas(t.Context()); len(unreachable) > 0 {
		t.Fatal(unreachable)
	}
	request := HTTPRequest{Method: http.MethodGet, Path: "/version"}
	for _, step := range []struct {
		name  string
		to    *server
		all   int // requests of SendToAll
		fails bool
	}{
		{"both", first, 3, false},
		{"one", second, 2 + freshConnections, true},
		{"none", balancer, 1 + freshConnections, true},
	} {
		for failed := 0; step.fails; failed++ { // also once for a connection that was open
			if _, err := c.Send(t.Context(), request); err == nil && failed > 0 {
				break
			} else if !errors.Is(err, framework.ErrNoResponse) || failed > 1 {
				t.Fatalf("%s: got %v after %d failures, want no response first", step.name, err, failed)
			}
		}
		before := step.to.requests.Load()
		for range 5 {
			if _, err := c.Send(t.Context(), request); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
		}
		if _, err := c.Samples(t.Context(), "some_metric"); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := step.to.requests.Load() - before; got != 6 {
			t.Errorf("%s: %d of 6 requests were sent to the chosen server", step.name, got)
		}
		sent := 0
		mu.Lock()
		clear(connections)
		mu.Unlock()
		_, missing, err := c.SendToAll(t.Context(), request, func(framework.Result) string {
			sent++
			return ""
		})
		if sent != step.all || missing != "" || err != nil {
			t.Errorf("%s: sent to %d, missing %q, %v; want %d", step.name, sent, missing, err, step.all)
		}
		mu.Lock()
		if step.fails && len(connections) < freshConnections {
			t.Errorf("%s: %d connections to the load balancer, want %d or more", step.name, len(connections), freshConnections)
		}
		mu.Unlock()
		step.to.Close()
	}
}

// An API server that is no longer in the EndpointSlices is forgotten, and one that cannot be reached is named.
func TestReplicasAreFoundAgain(t *testing.T) {
	kept, keptCA := startReplica(t, answerVersion)
	gone, goneCA := startReplica(t, answerVersion)
	stranger := startServer(t, answerVersion) // its certificate is not valid for ServiceName
	var lists []*server
	for _, others := range [][]*server{{kept, gone}, {kept, stranger}, {kept}} {
		lists = append(lists, withSlices(t, others...))
	}
	var current atomic.Int64
	balancer := startServer(t, func(w http.ResponseWriter, r *http.Request) { lists[current.Load()].Config.Handler.ServeHTTP(w, r) })
	c, err := New(&rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: append(append(balancer.ca(), keptCA...), goneCA...)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.FindReplicas(t.Context())
	for i, want := range []int{3, 2 + freshConnections, 2} {
		current.Store(int64(i))
		c.replicas.read = time.Time{} // long ago
		if got := c.routes(t.Context()); len(got) != want {
			t.Errorf("list %d: %d ways, want %d: %v", i, len(got), want, got)
		}
	}
	current.Store(1)
	if unreachable := c.FindReplicas(t.Context()); len(unreachable) != 1 || !strings.Contains(unreachable[0], "10 requests in a row") {
		t.Errorf("unreachable: %q", unreachable)
	}
}

// A replica at which the credentials belong to another user is not used.
func TestReplicaWithAnotherUser(t *testing.T) {
	same, sameCA := startReplica(t, answerVersion)
	other, otherCA := startReplica(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			answerVersion(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"jane"}}}`)
	})
	balancer := withSlices(t, same, other)
	c, err := New(&rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: append(append(balancer.ca(), sameCA...), otherCA...)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	unreachable := c.FindReplicas(t.Context())
	if len(unreachable) != 1 || !strings.Contains(unreachable[0], "another user") {
		t.Errorf("unreachable: %q", unreachable)
	}
}
