package fence

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// webhook is a webhook under test that answers with a handler.
func webhookServer(t *testing.T, handler http.HandlerFunc) (url string, caBundle []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it disconnect
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func configuration(service string) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingWebhooks, "metadata": map[string]any{"name": "a"},
		"webhooks": []any{map[string]any{"name": "w.example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": "guard", "name": service}}}},
	}
}

// A webhook that Hooks cannot call is an error that says why. Others are not waited for.
func TestWebhooksAnswer(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedURL := "https://" + closed.Addr().String()
	_ = closed.Close()
	serving, caBundle := webhookServer(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	e := &Webhooks{Limit: time.Second, Progress: func(line string) { t.Log(line) }, Endpoints: install.Endpoints{ByAddress: map[string]framework.Endpoint{
		"guard/serving":   {URL: serving, CABundle: caBundle},
		"guard/refused":   {URL: closedURL},
		"guard/untrusted": {URL: serving + "/other"},
		"guard/inside":    {},
	}}}
	for service, want := range map[string]string{
		"serving": "", "inside": "", "unknown": "",
		"refused":   "connection refused; start it before the run",
		"untrusted": "x509: certificate signed by unknown authority",
	} {
		t.Run(service, func(t *testing.T) {
			err := e.Wait(t.Context(), []map[string]any{{"kind": "ConfigMap"}, configuration(service)})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "guard/"+service)) {
				t.Errorf("got %v, want %q", err, want)
			}
			if errors.Is(err, framework.ErrTimeout) {
				t.Errorf("%v is an ErrTimeout, which would be inconclusive", err)
			}
			if err := e.Wait(t.Context(), []map[string]any{configuration(service)}); err != nil {
				t.Errorf("got %v, want that it is asked once in a run", err)
			}
		})
	}
	e.Endpoints.URLs = true
	if err := e.Wait(t.Context(), []map[string]any{configuration("inside")}); err == nil || !strings.Contains(err.Error(), "--endpoint guard/inside=URL") {
		t.Errorf("a Service that no API server on this machine can call: %v", err)
	}
}
