package reference

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// harnessOf is the plugin of an entry, in a World as its Subject says.
func harnessOf(t *testing.T, name string, more ...fakes.Option) *harness.Harness {
	t.Helper()
	subject := entries()[name]().subject
	w := fakes.NewWorld(t, append(append([]fakes.Option{}, subject.World...), more...)...)
	options := []harness.Option{harness.WithWorld(w), harness.WithScheme(subject.Scheme)}
	if subject.Config != "" {
		options = append(options, harness.WithConfig(subject.Config))
	}
	if subject.Inject != nil {
		options = append(options, harness.WithInjectors(subject.Inject(w)...))
	}
	return harness.New(t, subject.Source, options...)
}

// mustBe500 fails when a refusal that should not be an internal error is none any more.
func mustBe500(t *testing.T, result harness.Result, reason metav1.StatusReason) {
	t.Helper()
	if result.Err == nil || result.Status.Code != http.StatusInternalServerError || result.Status.Reason != reason {
		t.Errorf("is the defect fixed?\n%s\nwant 500 and reason %q", result, reason)
	}
}

func TestFindingServiceAccountRefusesWith500(t *testing.T) {
	h := harnessOf(t, "ServiceAccount")
	mustBe500(t, h.Do(debugged("strict", "other")), metav1.StatusReasonUnknown)
	// The same of another container is a proper refusal.
	h.Do(framework.Create(podOf("strict", mountSecret("other")))).MustReject(t, metav1.StatusReasonForbidden, "is not allowed")
}
