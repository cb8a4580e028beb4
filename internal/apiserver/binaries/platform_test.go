package binaries

import (
	"strings"
	"testing"
)

// Windows has no servers: the error is one line, which says what to do.
func TestCheckPlatform(t *testing.T) {
	for goos, want := range map[string]bool{"linux": true, "darwin": true, "windows": false} {
		err := checkPlatform(goos)
		if (err == nil) != want || err != nil && (!strings.Contains(err.Error(), "--kubeconfig") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: got %v, want an error: %t, in one line with what to do", goos, err, !want)
		}
	}
}
