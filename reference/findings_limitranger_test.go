package reference

import (
	"errors"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// mustPanic fails when a request no longer makes the plugin panic.
func mustPanic(t *testing.T, h *harness.Harness, request framework.Request) {
	t.Helper()
	var panicked *harness.PanicError
	if _, err := h.Run(t.Context(), request); !errors.As(err, &panicked) {
		t.Errorf("%s: %v, want a panic: is the defect fixed?", request, err)
	}
}

// Any other type than its own makes it panic: unstructured, or metadata alone.
func TestFindingLimitRangerPanics(t *testing.T) {
	h := harnessOf(t, "LimitRanger")
	mustPanic(t, h, framework.Create(plainPod("limited", "p")).AsUnstructured())
	mustPanic(t, h, framework.Create(claim("limited", "5Gi")).AsUnstructured())
}

// The order of several violations in the message varies.
func TestFindingLimitRangerMessagesDiffer(t *testing.T) {
	h, seen := harnessOf(t, "LimitRanger"), map[string]bool{}
	for range 5 {
		seen[h.Do(framework.Create(wrongInManyWays())).Status.Message] = true
	}
	if len(seen) == 1 {
		t.Error("one message five times: is the defect fixed?")
	}
}
