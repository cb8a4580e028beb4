package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err == nil && highWater(os.Getpid()) < 1 {
		t.Errorf("memory of this process = %g MiB; want at least 1", highWater(os.Getpid()))
	}
	if got := highWater(-1); got != 0 {
		t.Errorf("memory of no process = %g; want 0", got)
	}
}

func TestExecute(t *testing.T) {
	b := &bench{command: "sh"}
	got, err := b.execute(t.Context(), "-c", "printf hello")
	if err != nil || string(got.stdout) != "hello" || got.wall <= 0 {
		t.Errorf("execute = %q after %s, %v; want hello", got.stdout, got.wall, err)
	}
	if _, err = b.execute(t.Context(), "-c", "echo oops >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "oops") {
		t.Errorf("execute = %v; want the exit status and what it printed", err)
	}
}

// Scenarios that did not pass are named, and the measurement goes on.
func TestNames(t *testing.T) {
	command := filepath.Join(t.TempDir(), "command")
	script := `#!/bin/sh
echo '{"outcomes": [{"name": "a.b", "verdict": "fail", "reason": "step 1"}, {"name": "a.c", "verdict": "pass"}]}'; exit 1
`
	if err := os.WriteFile(command, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	b := &bench{command: command, out: &out}
	if err := b.catalogue(t.Context()); err != nil || !strings.Contains(out.String(), "\n  fail a.b: step 1\n") || !slices.Equal(b.failed, []string{"a.b"}) {
		t.Errorf("got %v, %q:\n%s", err, b.failed, out.String())
	}
}
