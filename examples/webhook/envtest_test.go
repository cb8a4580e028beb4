package main_test

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/suites/conformance"

	"example.com/ingress-guard/certs"
)

// TestOnYourEnvtest runs scenarios/ on an API server that the test has already: the
// Environment of controller-runtime's envtest, which many webhooks' tests start.
func TestOnYourEnvtest(t *testing.T) {
	log.SetLogger(logr.Discard())
	binaries, err := binaries.Find(t.Context(), binaries.Options{})
	if err != nil {
		t.Skipf("no kube-apiserver to run on: %v", err)
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: binaries.Dir}
	config, err := environment.Start()
	if err != nil {
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
		Config: config, Paths: []string{"scenarios"}, Strict: true,
		Endpoints: map[string]framework.Endpoint{service: {URL: serve(t, made), CABundle: made.CA}},
	})
}
