package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/internal/target"
)

// result is the exit code and the output of a command line.
type result struct {
	code           int
	stdout, stderr string
}

// safe is a buffer that several goroutines can write to.
type safe struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *safe) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(data)
}

// fixture is a small catalogue.
func fixture() fs.FS {
	return fstest.MapFS{
		"order/by-name.yaml":        {Data: []byte(scenarioFile("order.by-name", "MUST", "fine"))},
		"order/mutating-first.yaml": {Data: []byte(scenarioFile("order.mutating-first", "SHOULD", "fine"))},
		"wire/tls-version.yaml":     {Data: []byte(scenarioFile("wire.tls-version", "MAY", "fine"))},
	}
}

// scenarioFile is a scenario that creates a ConfigMap.
func scenarioFile(name, level, object string) string {
	return fmt.Sprintf(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: %s}
spec:
  level: %s
  requirement: The requirement of %s.
  source: ["https://example.com/%s"]
  behaviours: [ORDER-001, ORDER-002]
  since: "1.20"
  # The steps.
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}
      then: {allowed: true} # the point
`, name, level, name, name, object)
}

// write writes files to a new folder and returns its path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// execute runs a command line with the fixture as the catalogue. If target is not nil, it
// is used instead of a real one.
func execute(ctx context.Context, target target.Provider, args ...string) result {
	var stdout, stderr safe
	a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}, catalogue: fixture(), provider: target}
	code := a.main(ctx, args)
	return result{code, stdout.String(), stderr.String()}
}

// onCatalogue runs a command line with the real catalogue.
func onCatalogue(ctx context.Context, args ...string) result {
	var stdout, stderr safe
	code := Main(ctx, args, Process{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
	return result{code, stdout.String(), stderr.String()}
}

// check compares an exit code, and looks for texts on standard error.
func (r result) check(t *testing.T, code int, says ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code = %d; want %d", r.code, code)
	}
	for _, part := range says {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("standard error lacks %q", part)
		}
	}
	for line := range strings.Lines(r.stderr) {
		if strings.Contains(line, "goroutine ") || strings.Contains(line, "panic:") {
			t.Errorf("standard error has a Go dump")
		}
	}
	if t.Failed() {
		t.Logf("standard error:\n%s\nstandard output:\n%s", r.stderr, r.stdout)
	}
}
