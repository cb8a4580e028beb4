package main_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/conformance"

	"example.com/ingress-guard/certs"
	"example.com/ingress-guard/handlers"
)

// service is the NAMESPACE/NAME of the Service in config/.
const service = "ingress-guard/ingress-guard"

// TestAdmission runs scenarios/ on an API server that this test starts and that calls the
// webhooks in this process. With ADMISSIONTEST_KIND=1 it runs the same scenarios on a kind
// cluster, which calls the Deployment of config/.
func TestAdmission(t *testing.T) {
	log.SetLogger(logr.Discard()) // of controller-runtime, which serves the webhooks
	made, err := certs.Make()
	if err != nil {
		t.Fatal(err)
	}
	options := conformance.Options{
		Selection: conformance.Selection{Paths: []string{"scenarios"}},
		Report:    conformance.Report{Strict: true, Dir: os.Getenv("REPORT_DIR")},
	}
	if os.Getenv("ADMISSIONTEST_KIND") != "" {
		options.Target.Config = deploy(t, made)
		options.Subject.Endpoints = map[string]framework.Endpoint{service: {CABundle: made.CA}}
		conformance.Run(t, options)
		return
	}
	if testing.Short() {
		t.Skip("it starts kube-apiserver, and builds it if this machine has none")
	}
	options.Target.Version = os.Getenv("ADMISSIONTEST_K8S_VERSION")
	options.Subject.Endpoints = map[string]framework.Endpoint{service: {URL: serve(t, made), CABundle: made.CA}}
	conformance.Run(t, options)
}

// serve serves the webhooks on a free port of this machine and returns their URL.
func serve(t *testing.T, made certs.Certs) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if err := made.Write(dir); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	server, err := handlers.NewServer(handlers.Options{Host: "127.0.0.1", Port: port, CertDir: dir, Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve webhooks: %v", err)
		}
	})
	return fmt.Sprintf("https://127.0.0.1:%d", port)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
