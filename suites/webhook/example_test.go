package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

// allow is a webhook that allows everything, and forgets the uid.
func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 7<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// In a test, call Run instead of Check.
func ExampleCheck() {
	report := webhook.Check(context.Background(), webhook.Subject{
		Handler: http.HandlerFunc(allow),
		Kind:    webhook.Validating,
		Allow:   webhook.Samples(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}),
	}, webhook.Only("answers-repeat-the-uid", "delete-gets-a-verdict"))
	for _, outcome := range report.Outcomes {
		fmt.Println(outcome.Rule, outcome.Verdict)
	}
	// Output:
	// WH-PROTO-1 answers-repeat-the-uid fail
	// WH-SHAPE-1 delete-gets-a-verdict unsupported
}
