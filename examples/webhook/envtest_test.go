package main_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/conformance"

	"example.com/ingress-guard/certs"
)

// TestOnYourEnvtest runs scenarios/ on an API server that the test has already: the
// Environment of controller-runtime's envtest, which many webhooks' tests start.
func TestOnYourEnvtest(t *testing.T) {
	log.SetLogger(logr.Discard())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not name a directory with kube-apiserver and etcd")
	}
	environment := &envtest.Environment{}
	if _, err := environment.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop envtest: %v", err)
		}
	})
	made, err := certs.Make()
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Options{
		Target:    conformance.Target{Environment: environment},
		Selection: conformance.Selection{Paths: []string{"scenarios"}},
		Subject:   conformance.Subject{Endpoints: map[string]framework.Endpoint{service: {URL: serve(t, made), CABundle: made.CA}}},
		Report:    conformance.Report{Strict: true},
	})
}
