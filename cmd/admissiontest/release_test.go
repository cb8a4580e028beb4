package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// tagged is a version that the file proxy serves, and no other proxy.
const tagged = "v0.1.0-test"

// proxy writes a module proxy that has the committed files of this repository as version tagged, and returns its URL.
func proxy(t *testing.T) string {
	t.Helper()
	own := module.Version{Path: "github.com/admissiontest/admissiontest", Version: tagged}
	dir := t.TempDir()
	copied, folder := filepath.Join(dir, "copy"), filepath.Join(dir, own.Path, "@v")
	if output, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--shared", filepath.Join("..", ".."), copied).CombinedOutput(); err != nil {
		t.Fatalf("copy the repository: %v\n%s", err, output)
	}
	var archive bytes.Buffer
	created := zip.CreateFromDir(&archive, own, copied)
	requirements, err := os.ReadFile(filepath.Join(copied, "go.mod"))
	if err := errors.Join(created, err, os.MkdirAll(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"list": tagged, tagged + ".info": `{"Version": "` + tagged + `"}`, tagged + ".mod": string(requirements), tagged + ".zip": archive.String(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + dir
}

// The command of a tagged copy can be installed, and used as a tool of another module, and runs.
func TestInstalled(t *testing.T) {
	if os.Getenv("ADMISSIONTEST_RELEASE") == "" {
		t.Skip("it compiles Kubernetes' libraries, which takes minutes: make test-release")
	}
	const command = "github.com/admissiontest/admissiontest/cmd/admissiontest@latest"
	dir, bin := t.TempDir(), t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		one := exec.CommandContext(t.Context(), program, args...)
		one.Dir = dir
		// The modules that this machine has need no other proxy. They were checked when they were downloaded.
		one.Env = append(os.Environ(), "GOFLAGS=-trimpath -modcacherw", "GOBIN="+bin, "GOSUMDB=off", "GOWORK=off")
		output, err := one.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, args, err, output)
		}
		return string(output)
	}
	others := strings.Fields(run("go", "env", "GOMODCACHE", "GOPROXY"))
	t.Setenv("GOPROXY", strings.Join([]string{proxy(t), "file://" + filepath.Join(others[0], "cache", "download"), others[1]}, ","))
	t.Setenv("GOMODCACHE", t.TempDir())
	run("go", "install", command)
	run("go", "mod", "init", "example.com/project")
	run("go", "get", "-tool", command)
	for _, way := range [][]string{{filepath.Join(bin, "admissiontest")}, {"go", "tool", "admissiontest"}} {
		if got := run(way[0], append(way[1:], "--version")...); !strings.Contains(got, "admissiontest "+tagged+" ") {
			t.Errorf("%s --version printed %q, want %s", way, got, tagged)
		}
		if got := run(way[0], append(way[1:], "list", "order")...); !strings.Contains(got, "order.configurations.by-name") {
			t.Errorf("%s list order printed %q, want scenarios", way, got)
		}
	}
}
