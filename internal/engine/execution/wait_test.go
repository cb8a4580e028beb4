package execution

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
)

// A wait step that times out says what the object had last.
func TestWaitTimesOut(t *testing.T) {
	for name, test := range map[string]struct {
		wait scenario.Wait
		says string
	}{
		"other value": {scenario.Wait{Object: map[string]any{"metadata": map[string]any{"name": "other"}}}, `object.metadata.name: expected "other", actual "a"`},
		"still there": {scenario.Wait{Gone: true}, "the last response was 200"},
	} {
		c := caseOn(&fakeSandbox{})
		c.patience = 20 * time.Millisecond
		test.wait.ObjectReference = scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
		err := c.wait(t.Context(), test.wait)
		if !errors.Is(err, framework.ErrTimeout) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v; want a timeout with %q", name, err, test.says)
		}
	}
}

// withSecret is a Sandbox with a Secret.
type withSecret struct{ target.Sandbox }

func (withSecret) Send(context.Context, framework.Request) (framework.Result, error) {
	var result framework.Result
	result.Status.Code = 200
	result.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aHVudGVyMg=="}}}
	return result, nil
}

// What a Secret had last is not in a report.
func TestWaitForASecretTimesOut(t *testing.T) {
	c := caseOn(withSecret{})
	c.patience = 20 * time.Millisecond
	err := c.wait(t.Context(), scenario.Wait{
		ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "a"},
		Object:          map[string]any{"data": map[string]any{"password": "other"}},
	})
	if err == nil || !strings.Contains(err.Error(), "object.data.password") {
		t.Fatalf("got %v; want a timeout with the field", err)
	}
	if text := c.secrets.Text(err.Error()); strings.Contains(text, "aHVudGVyMg==") {
		t.Errorf("the value of a Secret is in a report: %s", text)
	}
}
