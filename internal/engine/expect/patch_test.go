package expect

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The operations of a patch are in the report, at most operationLimit, without the values for a Secret.
func TestPatchOf(t *testing.T) {
	call := func(kind string, patch ...any) framework.Call {
		return framework.Call{
			Review:   map[string]any{"request": map[string]any{"kind": map[string]any{"kind": kind}}},
			Response: map[string]any{"patch": patch},
		}
	}
	operations := []any{
		map[string]any{"op": "add", "path": "/data/a", "value": "<b>"},
		map[string]any{"op": "move", "path": "/data/b", "from": "/data/c"},
		map[string]any{"op": "remove", "path": "/data/d"},
		map[string]any{"op": 7}, "no operation",
	}
	want := []report.PatchOperation{
		{Op: "add", Path: "/data/a", Value: `"<b>"`}, {Op: "move", Path: "/data/b", Value: "from /data/c"}, {Op: "remove", Path: "/data/d"}, {Op: "7"}, {},
	}
	got, more := Options{}.patchOf(call("ConfigMap", operations...))
	if diff := cmp.Diff(want, got); diff != "" || more != 0 {
		t.Errorf("%d more, -want +got:\n%s", more, diff)
	}
	got, _ = Options{}.patchOf(call("Secret", operations...))
	if got[0].Value != "(redacted)" {
		t.Errorf("for a Secret: got %+v", got[0])
	}
	many := make([]any, operationLimit+3)
	if got, more = (Options{}).patchOf(call("ConfigMap", many...)); len(got) != operationLimit || more != 3 {
		t.Errorf("got %d operations and %d more, want %d and 3", len(got), more, operationLimit)
	}
	if got, _ = (Options{}).patchOf(framework.Call{}); got != nil {
		t.Errorf("without a response: got %v", got)
	}
}

// Texts that evidence changes or cuts have no tokens either.
func TestSecretsInTexts(t *testing.T) {
	secret := "eyJ" + strings.Repeat("token", 100)
	options := Options{}
	errs := errors.New("cannot read it: " + secret)
	texts := []string{Step{}.decisions([]reach.Finding{{Text: "it says " + secret}}, nil, options)[0].Text, Step{}.decisions(nil, errs, options)[0].Text}
	texts = append(texts, options.details(metav1.Status{Details: &metav1.StatusDetails{RetryAfterSeconds: 1, Name: secret}}))
	patch := framework.Call{Response: map[string]any{"patch": []any{map[string]any{"op": secret, "path": "/" + secret, "value": secret}}}}
	operations, _ := options.patchOf(patch)
	texts = append(texts, operations[0].Op, operations[0].Path, operations[0].Value)
	for _, text := range texts {
		if strings.Contains(text, "token") || !strings.Contains(text, match.Redacted) {
			t.Errorf("got %q", text)
		}
	}
}
