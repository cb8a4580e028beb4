//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// A file that a flag names is not read without a limit, and reading it does not wait.
func TestFilesOfFlags(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, userfile.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for file, says := range map[string]string{
		pipe: "pipe is not a regular file", "/dev/zero": "/dev/zero is not a regular file", large: "want at most 8388608",
	} {
		for _, args := range [][]string{
			{"--known-failing", file},
			{"--endpoint-ca", "a/b=" + file},
			{"--target", "kubeconfig", "--kubeconfig", file},
			{"--target", "kind", "--kind-config", file},
		} {
			got := onCatalogue(t.Context(), append([]string{"run", "order"}, args...)...)
			got.check(t, got.code, says)
			if got.code != 2 && got.code != 4 {
				t.Errorf("%v: exit code %d", args, got.code)
			}
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}
