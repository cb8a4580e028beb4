package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With a program, init also writes what it answers: the label that it adds, the denial of a creation, and warnings. What init writes passes, until an operation is
// dropped from the configuration.
func TestInitWebhooksOfProgram(t *testing.T) {
	w := buildWebhook(t)
	dir, args := writeGuards(t)
	program := slices.Concat(w.endpoint, []string{"--", w.path, "--address", w.address, "--certs={cert-dir}"})
	written := filepath.Join(dir, "webhooks.yaml")
	execute(t.Context(), nil, slices.Concat(args, program)...).check(t, exitPass, "6 scenarios; missing: 3", w.endpoint[1], "-- "+w.path)
	wantInFile(t, written, "by: guard", "code: 403", "message: allows no size of 4", "- sizes are checked", "  given:\n", "-- "+w.path)
	run := slices.Concat([]string{"run", written}, program)
	if got := execute(t.Context(), nil, run...); !strings.Contains(got.stdout, "6 pass, 0 fail") {
		t.Errorf("the file does not pass: %s\n%s", got.stdout, got.stderr)
	}
	configuration := filepath.Join(dir, "config", "webhooks.yaml")
	if err := os.WriteFile(configuration, []byte(strings.Replace(guards, "[CREATE, UPDATE, DELETE]", "[CREATE, UPDATE]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), nil, run...)
	got.check(t, exitFail)
	if !strings.Contains(got.stdout, "a call of size.example.com") {
		t.Errorf("the failure does not name the call:\n%s", got.stdout)
	}
}
