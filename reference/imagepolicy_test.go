package reference

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	imagepolicy "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// reviewImages is a webhook's answer: images called "bad" are refused, for "broken" it
// fails.
func reviewImages(w http.ResponseWriter, r *http.Request) {
	var review imagepolicy.ImageReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Status.Allowed = true
	review.Status.AuditAnnotations = map[string]string{"reviewed": "yes"}
	for _, container := range review.Spec.Containers {
		switch {
		case strings.Contains(container.Image, "broken"):
			http.Error(w, "out of order", http.StatusTeapot)
			return
		case strings.Contains(container.Image, "bad"):
			review.Status.Allowed, review.Status.Reason = false, "bad image"
		case strings.Contains(container.Image, "nameless"):
			review.Status.Allowed = false
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// imagePolicyConfig starts the webhook, and returns the configuration of the plugin.
func imagePolicyConfig(t *testing.T, more string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(reviewImages))
	t.Cleanup(server.Close)
	server.Config.SetKeepAlivesEnabled(false)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, server.URL)
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("imagePolicy:\n  kubeConfigFile: %s\n  retryBackoff: 1\n%s", path, more)
}

func imagePolicyEntry() entry {
	running := func(image string) *core.Pod {
		return podWith("default", "p", func(pod *core.Pod) {
			pod.Annotations = map[string]string{"team.image-policy.k8s.io/ticket": "7", "other": "x"}
			pod.Spec.Containers[0].Image = "registry.example.com/" + image
			pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1"}}
		})
	}
	debug := framework.UpdateWith(running("good:1"), func(pod *core.Pod) {
		pod.Spec.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "debug", Image: "registry.example.com/bad:1"}}}
	}).WithSubresource("ephemeralcontainers")
	subject := kubeSubject("ImagePolicyWebhook")
	subject.AnnotationPrefix = "imagepolicywebhook.image-policy.k8s.io/"
	subject.Subresources = []string{"ephemeralcontainers"}
	subject.Configs.Required = true
	subject.Allow = []framework.Request{
		framework.Create(running("good:1")), framework.UpdateWith(running("good:1"), labelPod), framework.Create(running("broken:1")),
		bindingOf(running("bad:1"), "node"),
	}
	subject.Reject = []framework.Request{framework.Create(running("bad:1")), framework.Create(running("nameless:1")), debug}
	start := func(t *testing.T, subject *contract.Subject) {
		subject.Config = imagePolicyConfig(t, "  defaultAllow: true\n")
		subject.Configs.Valid = []string{subject.Config, strings.Replace(subject.Config, "retryBackoff", "allowTTL", 1)}
		subject.Configs.Invalid = []string{strings.Replace(subject.Config, "retryBackoff: 1", "retryBackoff: 9999999", 1), "imagePolicy:\n  kubeConfigFile: does-not-exist\n"}
	}
	return entry{subject: subject, start: start, waivers: []waiver{
		{"V1", "when it fails open, Validate annotates the pod, which an API server discards; historical, the code was once in Admit", "plugin/pkg/admission/imagepolicy/admission.go:122"},
		{"K2", "it ignores unknown and repeated fields; the format has no version", "plugin/pkg/admission/imagepolicy/admission.go:263"},
	}}
}
