package client

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

const secretToken = "token-of-the-operator"

// server is a TLS server that counts the requests, and those with the token.
type server struct {
	*httptest.Server
	requests, tokens atomic.Int64
}

func startServer(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if strings.Contains(r.Header.Get("Authorization"), secretToken) {
			s.tokens.Add(1)
		}
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it disconnect
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func answerVersion(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
}

// withSlices is an API server whose EndpointSlices name other servers.
func withSlices(t *testing.T, others ...*server) *server {
	t.Helper()
	list := discoveryv1.EndpointSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"}}
	for _, other := range others {
		host, port, err := net.SplitHostPort(other.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			Ports:      []discoveryv1.EndpointPort{{Port: ptr.To(int32(number))}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{host}}},
		})
	}
	return startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/apis/discovery.k8s.io/") {
			answerVersion(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
}

// Nothing is sent to an address that an EndpointSlice names: other clients can write it.
func TestReplicasGetNoCredentials(t *testing.T) {
	first, second := startServer(t, answerVersion), startServer(t, answerVersion)
	api := withSlices(t, first, second)
	c, err := New(&rest.Config{Host: api.URL, BearerToken: secretToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if message := c.FindReplicas(t.Context()); !strings.Contains(message, "2 API servers") {
		t.Errorf("message %q", message)
	}
	if _, missing, err := c.SendToAll(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/version"}, func(framework.Result) string { return "" }); missing != "" || err != nil {
		t.Error(missing, err)
	}
	if api.tokens.Load() == 0 || first.requests.Load()+second.requests.Load() != 0 {
		t.Errorf("the API server got %d tokens, the addresses of the EndpointSlice %d requests; want none", api.tokens.Load(), first.requests.Load()+second.requests.Load())
	}
}

// A redirect to another server does not carry the credentials there, and is the response.
func TestRedirects(t *testing.T) {
	other := startServer(t, answerVersion)
	plain := 0
	unencrypted := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plain++ }))
	defer unencrypted.Close()
	api := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/other":
			http.Redirect(w, r, other.URL+"/x", http.StatusFound)
		case "/unencrypted":
			http.Redirect(w, r, unencrypted.URL+"/x", http.StatusTemporaryRedirect)
		case "/self":
			http.Redirect(w, r, "/self/", http.StatusMovedPermanently)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			answerVersion(w, r)
		}
	})
	c, err := New(&rest.Config{Host: api.URL, BearerToken: secretToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for path, code := range map[string]int32{"/other": 302, "/unencrypted": 307, "/self": 200, "/loop": 302} {
		t.Run(path, func(t *testing.T) {
			got, err := c.Send(t.Context(), HTTPRequest{Method: http.MethodGet, Path: path})
			if err != nil || got.Status.Code != code {
				t.Errorf("got %d, %v; want %d", got.Status.Code, err, code)
			}
		})
	}
	if other.requests.Load() != 0 || plain != 0 {
		t.Errorf("other servers got %d and %d requests; want none", other.requests.Load(), plain)
	}
}
