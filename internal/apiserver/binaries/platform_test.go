package binaries

import (
	"runtime"
	"strings"
	"testing"
)

// Windows has no servers: the error is one line, which says what to do.
func TestCheckPlatform(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", runtime.GOOS} {
		if err := checkPlatform(goos); err != nil {
			t.Errorf("%s: %v", goos, err)
		}
	}
	err := checkPlatform("windows")
	if err == nil || !strings.Contains(err.Error(), "--kubeconfig") || strings.Contains(err.Error(), "\n") {
		t.Errorf("windows: got %v, want one line with what to do", err)
	}
}
