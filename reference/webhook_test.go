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

	admissionv1 "k8s.io/api/admission/v1"
	imagepolicy "k8s.io/api/imagepolicy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// answerReview is a webhook's answer. It refuses what is labeled "banned", fails for what
// is labeled "broken", and on /mutate labels pods that have no label "hooked".
func answerReview(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	raw := string(review.Request.Object.Raw) + string(review.Request.OldObject.Raw)
	answer := &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: true,
		AuditAnnotations: map[string]string{"reviewed": "yes"}, Warnings: []string{"reviewed by a webhook"},
	}
	switch {
	case strings.Contains(raw, `"broken"`):
		http.Error(w, "out of order", http.StatusTeapot)
		return
	case strings.Contains(raw, `"banned"`), strings.Contains(raw, `"container":"secret"`):
		answer.Allowed = false
		answer.Result = &metav1.Status{Message: "not welcome", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	case r.URL.Path == "/mutate" && len(review.Request.Object.Raw) > 0 && review.Request.SubResource == "" && !strings.Contains(raw, `"hooked"`):
		answer.Patch, answer.PatchType = hookPatch(raw), ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// hookPatch annotates an object, whether it has annotations or not.
func hookPatch(raw string) []byte {
	if strings.Contains(raw, `"annotations":`) {
		return []byte(`[{"op":"add","path":"/metadata/annotations/hooked","value":"yes"}]`)
	}
	return []byte(`[{"op":"add","path":"/metadata/annotations","value":{"hooked":"yes"}}]`)
}

// webhookServer starts a webhook, and returns its URL.
func webhookServer(t *testing.T) string { return started(t, answerReview) }

// started starts a server, and returns its URL.
func started(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	server.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(server.Close)
	return server.URL
}

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

// imageReviewer starts the webhook of ImagePolicyWebhook, and returns a kubeconfig file with its address.
func imageReviewer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, started(t, reviewImages))
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
