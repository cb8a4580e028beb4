package seeds

import (
	"encoding/json"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestReached shows that faults which are not found are reached.
func TestReached(t *testing.T) {
	s := &Server{}
	do := func(file, resource, sub string, op admissionv1.Operation, change func(m map[string]any)) *admissionv1.AdmissionResponse {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]any{}
		if err := yaml.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(m)
		}
		raw, _ := json.Marshal(m)
		return s.mutate(&admissionv1.AdmissionRequest{Namespace: "web", Operation: op, Resource: metav1.GroupVersionResource{Resource: resource, Version: "v1"}, Object: runtime.RawExtension{Raw: raw}})
	}
	for _, f := range []string{"", "env-overwritten", "limit-below-request"} {
		fault = f
		t.Logf("%q optout: %s", f, do("allow/pod-optout.yaml", "pods", "", "CREATE", nil).Patch)
	}
	for _, f := range []string{"", "mutate-in-deletion"} {
		fault = f
		t.Logf("%q UPDATE in deletion: %s", f, do("allow/widget.yaml", "widgets", "", "UPDATE", func(m map[string]any) {
			m["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}).Patch)
	}
	for _, f := range []string{"", "sidecar-first"} {
		fault = f
		t.Logf("%q minimal: %s", f, do("allow/pod-minimal.yaml", "pods", "", "CREATE", nil).Patch)
	}
}
