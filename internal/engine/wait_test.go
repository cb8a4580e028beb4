package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// A step that waited in vain says what the object had last.
func TestWaitInVain(t *testing.T) {
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
