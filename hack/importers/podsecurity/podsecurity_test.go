// Package podsecurity tests the webhook of Pod Security Admission with its own versions of Kubernetes, as its
// repository would.
package podsecurity

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/admission/api/load"
	psa "k8s.io/pod-security-admission/cmd/webhook/server"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

const project = "k8s.io/pod-security-admission"

// Adding the conformance suite to Pod Security Admission does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

// namespaces is an API server whose namespaces enforce the level restricted, and which has no pods.
func namespaces(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if path.Base(r.URL.Path) == "pods" {
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}})
		return
	}
	_ = json.NewEncoder(w).Encode(corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: path.Base(r.URL.Path), Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}},
	})
}

// handler serves the webhook.
func handler(t *testing.T) http.Handler {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(namespaces))
	t.Cleanup(api.Close)
	configuration, err := load.LoadFromData(nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := psa.Setup(&psa.Config{
		InsecureServing: &server.DeprecatedInsecureServingInfo{}, KubeConfig: &rest.Config{Host: api.URL, QPS: -1}, PodSecurityConfig: configuration,
	})
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(made.HandleValidate)
}

// TestContract checks the rules for webhooks. The waivers are findings: docs/findings.md.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler:        handler(t),
		Configurations: importers.Files(t, project, "webhook/manifests/70-validatingwebhookconfiguration.yaml"),
		Allow:          webhook.SampleFiles("testdata/good.yaml", "testdata/deployment.yaml"),
		Reject:         []webhook.Sample{{Manifest: webhook.Manifest{File: "testdata/bad.yaml"}, Message: "violates PodSecurity"}},
	},
		webhook.Waive("malformed-reviews-are-refused", "cmd/webhook/server/server.go uses the request without a check for nil"),
		webhook.Waive("large-reviews-are-decided", "cmd/webhook/server/server.go reads at most 3 MiB"),
	)
}
