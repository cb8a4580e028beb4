package main_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/ingress-guard/certs"
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
		Reject: []webhook.Sample{
			{Manifest: webhook.Manifest{File: "testdata/foreign.yaml"}, Message: `host "shop.example.org" is not under example.com`}, // foreign.fix.yaml repairs it
			{Manifest: webhook.Manifest{File: "testdata/protected.yaml"}, Operation: "DELETE", Message: "it is protected"},
		},
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

// TestInstalled deploys the webhooks on a kind cluster, and checks the rules there with the command. The verdicts are as in
// TestContract.
func TestInstalled(t *testing.T) {
	if os.Getenv("ADMISSIONTEST_KIND") == "" {
		t.Skip("ADMISSIONTEST_KIND is not set: it needs a kind cluster: make test-kind")
	}
	command, err := exec.LookPath(cmp.Or(os.Getenv("AT"), "admissiontest"))
	if err != nil {
		t.Skipf("the command admissiontest is not there (the variable AT can have its path): %v", err)
	}
	made, err := certs.Make()
	if err != nil {
		t.Fatal(err)
	}
	install(t, deploy(t, made), made.CA)
	args := []string{"contract", "--webhook", "ingress-guard", "-o", "json",
		"--allow", "testdata/shop.yaml", "--reject", "testdata/foreign.yaml=is not under example.com", "--reject", "DELETE:testdata/protected.yaml=it is protected"}
	if path := os.Getenv("ADMISSIONTEST_KIND_KUBECONFIG"); path != "" {
		args = append(args, "--kubeconfig", path)
	}
	output, err := exec.CommandContext(t.Context(), command, args...).Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("%v\n%s\n%s", err, failed.Stderr, output)
	}
	var report struct {
		Outcomes []struct{ Name, Verdict, Reason string }
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, outcome := range webhook.Check(t.Context(), subject(t)).Outcomes {
		want[outcome.Rule.ID+" ("+outcome.Webhook+")"] = string(outcome.Verdict)
	}
	for _, outcome := range report.Outcomes {
		rule, _, _ := strings.Cut(outcome.Name, " ")
		switch rule {
		case "WH-SEC-1", "WH-SERVER-1": // a handler has no TLS, and no API server
			want[outcome.Name] = "pass"
		case "WH-DRY-2": // nothing shows what a Pod does
			want[outcome.Name] = "unsupported"
		}
		if outcome.Verdict != want[outcome.Name] {
			t.Errorf("%s: got %s on the cluster, want %s: %s", outcome.Name, outcome.Verdict, want[outcome.Name], outcome.Reason)
		}
	}
	if len(report.Outcomes) != len(want) {
		t.Errorf("%d outcomes, want %d", len(report.Outcomes), len(want))
	}
}
