package expect_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// Mismatches in an audit event do not show the data of a Secret.
func TestAuditIsRedacted(t *testing.T) {
	var got framework.Result
	got.Status.Code = 201
	got.Audit = &framework.Audit{Level: "RequestResponse", ResponseObject: map[string]any{"kind": "Secret", "data": map[string]any{"pin": "1234"}}}
	expectation := &scenario.Expectation{Audit: map[string]any{"responseObject": map[string]any{"data": map[string]any{"pin": "1235"}}}}
	found := expect.Judge(expectation, got)
	if want := "audit.responseObject.data.pin: expected (redacted), actual (redacted)"; len(found) != 1 || !strings.Contains(found[0].String(), want) {
		t.Errorf("got %v; want %s", found, want)
	}
}

// A token is hidden before a long text is cut, wherever the cut is.
func TestTextIsRedactedBeforeItIsCut(t *testing.T) {
	const secret = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9"
	for length := range 2 * len(secret) {
		long := strings.Repeat(".", 300-length) + secret + "."
		var got framework.Result
		got.Status.Message, got.Status.Reason, got.Status.Code = long, "Forbidden", 403
		got.Status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: long}}}
		got.Warnings = []string{long}
		got.Audit = &framework.Audit{Annotations: map[string]string{"a": long}}
		got.Trace = framework.Trace{
			{Webhook: "w", Observed: true, Review: map[string]any{"request": map[string]any{"name": long}}},
			{Plugin: &framework.PluginCall{Name: "P", Handled: true, Refused: &framework.PluginRefusal{Message: long}}},
		}
		expectation := &scenario.Expectation{
			Message: []string{long + "!"}, Details: map[string]any{"causes": []any{}}, Warnings: []any{long + "!"},
			Audit:    map[string]any{"annotations": map[string]any{"a": long + "!"}},
			Calls:    &scenario.Calls{InOrder: []scenario.Call{{Webhook: "w", Request: map[string]any{"name": long + "!"}}}},
			Plugins:  &scenario.Plugins{InOrder: []scenario.PluginCall{{Plugin: "P", Refused: map[string]any{"message": long + "!"}}}},
			Distinct: []string{"review.request.name"},
		}
		got.Trace = append(got.Trace, got.Trace[0])
		refuser := expect.Refuser{Webhook: "w", Message: "no"}
		found := expect.Judge(expectation, got)
		found = append(found, expect.Refused(&scenario.Expectation{RefusedBy: &scenario.RefusedBy{Validation: long + "!"}}, refuser, got.Status)...)
		if len(found) < 9 {
			t.Fatalf("got %d mismatches, want one for each text:\n%v", len(found), found)
		}
		for _, one := range found {
			if text := one.String(); strings.Contains(text, "eyJ") || strings.Contains(text, "IiJ9") {
				t.Errorf("%d characters before the cut, a part of the secret is shown:\n%s", length, text)
			}
		}
	}
}
