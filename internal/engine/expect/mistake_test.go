package expect_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// manifest is a ConfigMap whose errors have the file a.yaml.
func manifest() expect.Manifest {
	return expect.Manifest{
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, Name: "given[0] ConfigMap a",
		At: func(field, message, hint string) *scenario.Error {
			return &scenario.Error{File: "a.yaml", Line: 1, Column: len(field) + 1, Message: message, Hint: hint}
		},
	}
}

func TestOfRefusal(t *testing.T) {
	t.Parallel()
	private := manifest()
	private.Private = true
	for name, test := range map[string]struct {
		of     expect.Manifest
		status metav1.Status
		want   string
	}{
		"unknown field": {manifest(), metav1.Status{Code: http.StatusBadRequest, Message: `strict decoding error: unknown field "dta"`}, `given[0] ConfigMap a: unknown field "dta"; expected a field of the API server's v1 ConfigMap`},
		"other":         {manifest(), metav1.Status{Code: http.StatusUnprocessableEntity, Message: "no hunter2"}, "given[0] ConfigMap a: the API server refuses it: no hunter2"},
		"private":       {private, metav1.Status{Code: http.StatusUnprocessableEntity, Message: "no hunter2"}, "the message is not shown"},
		"by a webhook":  {manifest(), metav1.Status{Code: http.StatusBadRequest, Message: `admission webhook "w" denied the request`}, ""},
		"no rights":     {manifest(), metav1.Status{Code: http.StatusForbidden, Message: "no"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := fmt.Errorf("send: %w", &apierrors.StatusError{ErrStatus: test.status})
			got := test.of.OfRefusal(refusal)
			if expect.IsMistake(got) != (test.want != "") || !strings.Contains(got.Error(), test.want) || test.of.Private && strings.Contains(got.Error(), "hunter2") {
				t.Errorf("got %v, want %q", got, test.want)
			}
			if test.want == "" && !errors.Is(got, refusal) {
				t.Errorf("got %v, want the same error", got)
			}
		})
	}
	if got := manifest().OfRefusal(nil); got != nil {
		t.Errorf("no error: got %v", got)
	}
}

// TestOfExpression: each error of the CEL compiler has its position in the file.
func TestOfExpression(t *testing.T) {
	t.Parallel()
	const message = "Invalid value: \"x +\\ny\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x +\n | ^\nERROR: <input>:2:7: Syntax error: no\n | y\n | ^"
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.e", Message: message}}}}}
	placed := manifest()
	placed.In = func(field string, at [2]int, message string) *scenario.Error {
		return &scenario.Error{File: "a.yaml", Line: 10 + at[0], Column: 20 + at[1], Message: message}
	}
	got := placed.OfRefusal(refusal).Error()
	want := "a.yaml:11:21: given[0] ConfigMap a: spec.e: undeclared reference to 'x'\na.yaml:12:27: given[0] ConfigMap a: spec.e: Syntax error: no"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOfWarning(t *testing.T) {
	t.Parallel()
	if got := manifest().OfWarning(`unknown field "dta"`); got == nil || got.Hint == "" {
		t.Errorf("unknown field: got %v, want an error with a hint", got)
	}
	for _, warning := range []string{"deprecated", `a webhook found an unknown field "dta"`} {
		t.Run(warning, func(t *testing.T) {
			if got := manifest().OfWarning(warning); got != nil {
				t.Errorf("got %v, want nothing", got)
			}
		})
	}
}
