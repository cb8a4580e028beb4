package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/testserver"
)

// certificate returns a certificate that signs itself, and its PEM.
func certificate(t *testing.T, address net.IP, end time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{address}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serve starts a webhook server with a certificate.
func serve(t *testing.T, with tls.Certificate, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{with}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// TestDialed finds why webhooks cannot be reached, and that CF-REACH-4 says it and no other rule.
func TestDialed(t *testing.T) {
	config := testserver.Own(t)
	loopback, later := net.IPv4(127, 0, 0, 1), time.Now().Add(100*24*time.Hour)
	good, goodPEM := certificate(t, loopback, later)
	_, otherPEM := certificate(t, loopback, later)
	expired, expiredPEM := certificate(t, loopback, time.Now().Add(-time.Hour))
	elsewhere, elsewherePEM := certificate(t, net.IPv4(10, 0, 0, 1), later)
	deny := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, uid, _ := strings.Cut(string(body), `"uid":"`)
		uid, _, _ = strings.Cut(uid, `"`)
		_, _ = io.WriteString(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"`+uid+`","allowed":false}}`)
	}
	stall := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, test := range []dialTest{
		{"denies", serve(t, good, deny), "", goodPEM},
		{"refused", strings.Replace(closed.URL, "http:", "https:", 1), "refused", goodPEM},
		{"chain", serve(t, good, deny), "tls chain", otherPEM},
		{"expired", serve(t, expired, deny), "expired", expiredPEM},
		{"host", serve(t, elsewhere, deny), "host name", elsewherePEM},
		{"name", "https://webhook.invalid", "name", goodPEM},
		{"timeout", serve(t, good, stall), "timeout", goodPEM},
	} {
		t.Run(test.name, func(t *testing.T) { dialOne(t, config, test) })
	}
}

// dialTest is a webhook and why it cannot be reached.
type dialTest struct {
	name, url, cause string
	bundle           []byte
}

func dialOne(t *testing.T, config *rest.Config, test dialTest) {
	t.Helper()
	name, cause := test.name, test.cause
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	configurations := client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"})
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": name + ".example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(1),
			"clientConfig":      map[string]any{"url": test.url, "caBundle": base64.StdEncoding.EncodeToString(test.bundle)},
			"rules":             []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "kube-public"}},
		}},
	}}
	if _, err := configurations.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configurations.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	var dialed []Dialed
	input := Input{Only: []string{"CF-REACH-4"}}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		if input.Cluster, err = ReadCluster(ctx, config, nil); err != nil {
			return false, err
		}
		dialed, err = Dial(ctx, config, input.Cluster)
		input.Cluster.Dialed = dialed
		return len(dialed) == 1 && dialed[0].Cause == cause && (cause != "" || dialed[0].Request != ""), err // until it is effective
	})
	if err != nil {
		t.Fatalf("got %+v, want cause %q: %v", dialed, cause, err)
	}
	if !strings.Contains(dialed[0].Request, "CREATE configmaps/admissiontest-doctor-dial in kube-public (dry run)") {
		t.Errorf("got request %q", dialed[0].Request)
	}
	report, err := Judge(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(report.Findings); (cause != "") != (got == 1) {
		t.Errorf("got %d findings for cause %q: %s", got, cause, report.Text())
	}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("kube-public").Get(t.Context(), "admissiontest-doctor-dial", metav1.GetOptions{}); err == nil {
		t.Error("the dry run stored an object")
	}
}
