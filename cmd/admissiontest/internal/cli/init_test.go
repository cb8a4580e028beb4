package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An interrupted init leaves no file. Its other tests are scripts: init.txtar and init-mistakes.txtar.
func TestInitInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written := filepath.Join(dir, "test.yaml")
	for _, after := range []string{"finding requests", "sending the requests"} {
		ctx, cancel := context.WithCancel(t.Context())
		a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &interrupting{at: after, cancel: cancel}}, catalogue: fixture()}
		if code := a.main(ctx, []string{"init", filepath.Join("testdata", "init"), "--to", written}); code != exitInterrupted {
			t.Errorf("interrupted after %q: exit code %d; want %d", after, code, exitInterrupted)
		}
		cancel()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("interrupted after %q: got %v, %v; want no file", after, left, err)
		}
	}
}
