package main_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/ingress-guard/handlers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// TestContract checks the rules for webhooks, in this process and without an API server.
func TestContract(t *testing.T) {
	server, err := handlers.NewServer(handlers.Options{Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	deletion := ingress("protected", "protected.example.com")
	deletion.Annotations = map[string]string{handlers.Protected: "true"}
	webhook.Run(t, webhook.Subject{
		Handler:        server.WebhookMux(),
		Configurations: webhook.Files("config/webhook.yaml"),
		Allow:          webhook.Samples(ingress("shop", "Shop.example.com")),
		Reject: []webhook.Sample{{
			Manifest: webhook.Manifest{Object: ingress("foreign", "shop.example.org")},
			Message:  `host "shop.example.org" is not under example.com`,
			Fix:      `[{"op": "replace", "path": "/spec/rules/0/host", "value": "shop.example.com"}]`,
		}, {
			Manifest:  webhook.Manifest{Object: deletion},
			Operation: "DELETE",
			Message:   "it is protected",
		}},
	})
}

// TestRollout starts the program, ends it by SIGTERM under calls, and renews its certificate.
func TestRollout(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ingress-guard")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	server, err := handlers.NewServer(handlers.Options{Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	webhook.Run(t, webhook.Subject{
		Handler:        server.WebhookMux(),
		Process:        []string{program, "--host", "127.0.0.1", "--port", "{port}", "--cert-dir", "{cert-dir}", "--drain", "1s"},
		Configurations: webhook.Files("config/webhook.yaml"),
		Allow:          webhook.Samples(ingress("shop", "Shop.example.com")),
	}, webhook.Only("a-stop-loses-no-call", "renewed-certificates-are-used"), webhook.Budget(3*time.Minute), webhook.Strict())
}

func ingress(name, host string) *networkingv1.Ingress {
	path, service := networkingv1.PathTypePrefix, networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
				{Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{Service: &service}},
			}}},
		}}},
	}
}
