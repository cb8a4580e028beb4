package hook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

const (
	v1      = "admission.k8s.io/v1"
	v1beta1 = "admission.k8s.io/v1beta1"
)

// recorder is a Server with one Recording for each owner, from its first Hook on.
type recorder struct {
	*hook.Server
	recordings map[string]*hook.Recording
}

func (r *recorder) Register(h hook.Hook) (hook.ClientConfig, error) {
	r.recording(h.Owner)
	return r.Server.Register(h)
}

func (r *recorder) RegisterConversion(owner, crd string, conversion hook.Conversion) (hook.ClientConfig, error) {
	r.recording(owner)
	return r.Server.RegisterConversion(owner, crd, conversion)
}

func (r *recorder) recording(owner string) {
	if r.recordings[owner] == nil {
		r.Restart(owner)
	}
}

// Restart replaces the Recording of an owner by a new one.
func (r *recorder) Restart(owner string) {
	if old := r.recordings[owner]; old != nil {
		old.Stop()
	}
	r.recordings[owner] = r.Record(owner)
}

func (r *recorder) Calls(owner string) framework.Trace { return r.recordings[owner].Calls() }

func (r *recorder) Err(owner string) error { return r.recordings[owner].Err() }

func start(t *testing.T) *recorder {
	t.Helper()
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return record(server)
}

func record(server *hook.Server) *recorder {
	return &recorder{Server: server, recordings: map[string]*hook.Recording{}}
}

// caller calls one Hook as an API server would: it trusts the CA bundle and follows
// no redirects.
type caller struct {
	url    string
	client *http.Client
}

func callerOf(t testing.TB, endpoint hook.ClientConfig) caller {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(endpoint.CABundle) {
		t.Fatalf("the CA bundle of %s is not PEM", endpoint.URL)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return caller{url: endpoint.URL, client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// register registers one mutating Hook "hook.example.com" of configuration "c" and
// returns a caller of it.
func register(t *testing.T, server *recorder, owner string, replies ...hook.Reply) caller {
	t.Helper()
	endpoint, err := server.Register(hook.Hook{
		Owner: owner, Configuration: "c", Webhook: "hook.example.com", Phase: framework.Mutating,
		Script: hook.Script{Replies: replies},
	})
	if err != nil {
		t.Fatal(err)
	}
	return callerOf(t, endpoint)
}

func review(version, uid string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"AdmissionReview","request":{"uid":%q,"operation":"CREATE","object":{"n":3,"f":1.5}}}`, version, uid)
}

// answered is what a caller got.
type answered struct {
	*http.Response
	body []byte
}

func (a answered) response(t *testing.T) map[string]any {
	t.Helper()
	return a.review(t)["response"].(map[string]any)
}

func (a answered) review(t *testing.T) map[string]any {
	t.Helper()
	var review map[string]any
	if err := json.Unmarshal(a.body, &review); err != nil {
		t.Fatalf("answer %q: %v", a.body, err)
	}
	return review
}

func (c caller) post(ctx context.Context, body []byte) (answered, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"?timeout=7s", bytes.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	return c.do(request)
}

func (c caller) do(request *http.Request) (answered, error) {
	response, err := c.client.Do(request)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answered{response, body}, err
}

func (c caller) call(t *testing.T) answered {
	t.Helper()
	got, err := c.post(t.Context(), review(v1, "u-1"))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

func eventually(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
	}
}

// until polls, for what can only be seen from outside.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func pointer[T any](value T) *T { return &value }

// selfSigned returns a client certificate.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "caller"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
