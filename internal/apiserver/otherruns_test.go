package apiserver

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/internal/testserver"
)

// Another run is alive from its first sandbox until it is closed, also when it has nothing installed.
func TestOtherRuns(t *testing.T) {
	t.Parallel()
	asks := newTarget(t, Options{Run: "asks"})
	other, err := New(t.Context(), Options{Config: testserver.Config(t), Run: "other"})
	if err != nil {
		t.Fatal(err)
	}
	newSandbox(t, asks, SandboxOptions{ID: "at-asks-001"})
	check := func(when string, wantAlive, wantInstalled bool) {
		t.Helper()
		alive, installed, err := asks.OtherRuns(t.Context())
		if err != nil || slices.Contains(alive, "other") != wantAlive || slices.Contains(installed, "other") != wantInstalled || slices.Contains(alive, "asks") {
			t.Errorf("%s: alive %v, installed %v, %v; want other among them: %t, %t", when, alive, installed, err, wantAlive, wantInstalled)
		}
	}
	check("before its first sandbox", false, false)
	sandbox := newSandbox(t, other, SandboxOptions{ID: "at-other-001"})
	check("with a sandbox", true, false)
	installAll(t, other, sandbox, denyAll, nil)
	check("with a policy", true, true)
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("closed", false, false)
}
