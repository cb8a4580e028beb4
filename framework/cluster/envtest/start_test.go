package envtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
)

// A start that fails says why and leaves nothing.
func TestFailedStartLeavesNothing(t *testing.T) {
	found, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	server, err := envtest.Start(t.Context(), envtest.Options{Assets: found, Profile: envtest.Profile{Flags: map[string]string{"no-such-flag": "1"}}})
	if err == nil {
		_ = server.Stop()
		t.Fatal("a server started with a flag that does not exist")
	}
	if !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got error %q, want one that names the flag", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the folder of temporary files: %v, %v", left, err)
	}
}
