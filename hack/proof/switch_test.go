package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/golden"
)

// One program runs as each of its mutants: it prints what the golden file says. A mutant that does not compile
// is named by the compiler. Without a selection the program is unchanged.
func TestSelectedMutant(t *testing.T) {
	text, err := os.ReadFile("testdata/program/main.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	made, err := mutants("main.go", text, func(p position) bool { return p.Line < 58 }) // none in main
	if err != nil {
		t.Fatal(err)
	}
	numbered := map[int]mutant{}
	for i, m := range made {
		numbered[i+1] = m
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "server", "program")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+switchModule+"\n\ngo 1.25\n"), 0o600), writeSwitch(dir)); err != nil {
		t.Fatal(err)
	}
	build := func() string {
		changed, err := addCopies("main.go", text, numbered)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "main.go"), changed, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, ".")
		command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	}
	var printed strings.Builder
	for messages := build(); messages != ""; messages = build() {
		wrong := notCompiled(messages)
		if len(wrong) == 0 {
			t.Fatal(messages)
		}
		for _, number := range wrong {
			fmt.Fprintf(&printed, "%s: does not compile\n", numbered[number].id())
			delete(numbered, number)
		}
	}
	run := func() string {
		out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	fmt.Fprintf(&printed, "unchanged: %s", run())
	for number := range len(made) {
		if m, ok := numbered[number+1]; ok {
			if err := selectMutant(filepath.Dir(program), number+1); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&printed, "%s: %s", m.id(), run())
		}
	}
	golden.Compare(t, "testdata/program/golden.txt", printed.String())
	if err := os.WriteFile(filepath.Join(filepath.Dir(program), selectedFile), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err == nil {
		t.Errorf("a selection that is not a number: got %s", out)
	}
}

func TestCopiesOfNothing(t *testing.T) {
	if _, err := addCopies("a.go", []byte("package"), nil); err == nil {
		t.Error("no Go: got no error")
	}
	if _, err := addCopies("a.go", []byte("package a\n\nvar x = 1\n"), map[int]mutant{1: {offset: 19}}); err == nil || !strings.Contains(err.Error(), "a.go: mutants [1] are in no function") {
		t.Errorf("a mutant in no function: got %v", err)
	}
}
