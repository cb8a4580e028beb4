package main_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"example.com/ingress-guard/handlers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// subject returns the webhooks, served in this process, and what they allow and deny.
func subject(t *testing.T) webhook.Subject {
	t.Helper()
	server, err := handlers.NewServer(handlers.Options{Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return webhook.Subject{
		Handler:        server.WebhookMux(),
		Configurations: webhook.Files("config/webhook.yaml"),
		Allow:          webhook.SampleFiles("testdata/shop.yaml"),
		Reject: append(webhook.SampleFiles("testdata/foreign.yaml"), // foreign.fix.yaml repairs it
			webhook.Sample{Manifest: webhook.Manifest{File: "testdata/protected.yaml"}, Operation: "DELETE", Message: "it is protected"}),
	}
}

// TestContract checks the rules for webhooks, in this process and without an API server.
func TestContract(t *testing.T) { webhook.Run(t, subject(t)) }

// TestRollout starts the program, ends it by SIGTERM under calls, and renews its certificate.
func TestRollout(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ingress-guard")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	s := subject(t)
	s.Process = []string{program, "--host", "127.0.0.1", "--port", "{port}", "--cert-dir", "{cert-dir}", "--drain", "1s"}
	webhook.Run(t, s, webhook.Only("a-stop-loses-no-call", "renewed-certificates-are-used"), webhook.Budget(3*time.Minute), webhook.Strict())
}
