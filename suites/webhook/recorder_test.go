package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// TestRecorder: a webhook that writes during a dry run fails WH-DRY-2, with what it wrote. What stores nothing is no side effect.
func TestRecorder(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	var recorder webhook.Recorder
	config := &rest.Config{Host: server.URL + "/clusters/a"}
	config.Wrap(recorder.Wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	harmless := func(ctx context.Context) error {
		_, err := maps.Get(ctx, "a", metav1.GetOptions{})
		if err == nil {
			_, err = maps.Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		if err == nil {
			_, err = client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
		}
		return err
	}
	remove := func(ctx context.Context) error { return maps.Delete(ctx, "a", metav1.DeleteOptions{}) }
	for name, test := range map[string]struct {
		call func(context.Context) error
		want framework.Verdict
	}{"harmless": {harmless, framework.Pass}, "remove": {remove, framework.Fail}} {
		t.Run(name, func(t *testing.T) {
			report := webhook.Check(t.Context(), webhook.Subject{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var review admissionv1.AdmissionReview
					if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
						http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
						return
					}
					if err := test.call(r.Context()); err != nil {
						t.Error(err)
					}
					review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
					_ = json.NewEncoder(w).Encode(review)
				}),
				Kind:    webhook.Validating,
				Allow:   webhook.Samples(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}),
				Effects: recorder.Writes,
			}, webhook.Only("WH-DRY-2"))
			got := report.Outcomes[0]
			wrote := strings.Contains(got.Reason, "DELETE /clusters/a/api/v1/namespaces/default/configmaps/a")
			if got.Verdict != test.want || wrote != (test.want == framework.Fail) {
				t.Errorf("got %s (%s), want %s", got.Verdict, got.Reason, test.want)
			}
		})
	}
}
