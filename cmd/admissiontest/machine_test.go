package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// folders returns the control-plane binaries, and a path at which no user can make a folder.
func folders(t *testing.T) (found binaries.Assets, impossible string) {
	t.Helper()
	found, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	return found, filepath.Join(file(t, "file", ""), "none")
}

// A HOME or TMPDIR that is missing or cannot be written is an error that says what to do, and
// only for the commands that need it. It is never a panic, unless both cannot be written:
// see TestNoFolderAtAll.
func TestUnusableFolders(t *testing.T) {
	binaries, impossible := folders(t)
	home := "HOME=" + t.TempDir()
	tests := map[string]struct {
		env  []string
		args []string
		code int
		says string // part of the standard error
	}{
		"version needs no HOME":    {env: []string{"HOME=" + impossible}, args: []string{"version"}},
		"list needs no TMPDIR":     {env: []string{home, "TMPDIR=" + impossible}, args: []string{"list"}},
		"list without variables":   {args: []string{"list"}},
		"assets list without HOME": {args: []string{"assets", "list", "--assets-dir", binaries.Dir}},
		"run without HOME":         {args: []string{"run", "wire.uid"}, code: 4, says: "set HOME, or use existing binaries: --assets-dir DIR"},
		"run, HOME not writable":   {env: []string{"HOME=" + impossible}, args: []string{"run", "wire.uid"}, code: 4, says: "choose another directory as the cache"},
		"run, TMPDIR not writable": {
			env: []string{home, "TMPDIR=" + impossible}, args: []string{"run", "wire.uid", "--assets-dir", binaries.Dir}, code: 4,
			says: "set TMPDIR to a directory that only you can write to",
		},
		"image without HOME": {args: []string{"image", "--tarball", filepath.Join(t.TempDir(), "image.tar")}, code: 4, says: "set HOME"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := command(t, test.args...)
			c.Env = append([]string{beCommand + "=1", "PATH=" + os.Getenv("PATH")}, test.env...)
			code, _, stderr := outcome(c)
			if code != test.code || !strings.Contains(stderr, test.says) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s", code, test.code, test.says, stderr)
			}
			for _, part := range []string{"goroutine ", "panic"} {
				if strings.Contains(stderr, part) {
					t.Errorf("standard error has %q:\n%s", part, stderr)
				}
			}
		})
	}
}

// The init of controller-runtime panics if it can make a folder neither in HOME nor in TMPDIR: SECURITY.md.
func TestNoFolderAtAll(t *testing.T) {
	_, impossible := folders(t)
	c := command(t, "version")
	c.Env = []string{beCommand + "=1", "HOME=" + impossible, "TMPDIR=" + impossible}
	if code, _, stderr := outcome(c); code == 0 || !strings.Contains(stderr, "panic: mkdir ") {
		t.Errorf("exit code %d and %s; want the panic, or a change of SECURITY.md", code, stderr)
	}
}

// A folder for temporary files is enough: HOME is not needed when the binaries are named, and
// nothing is left in either but the folder of controller-runtime.
func TestRunWithoutHome(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	binaries, impossible := folders(t)
	temporary := t.TempDir()
	c := command(t, "run", "wire.uid", "--assets-dir", binaries.Dir)
	c.Env = []string{beCommand + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + impossible, "TMPDIR=" + temporary}
	code, stdout, stderr := outcome(c)
	if code != 0 {
		t.Errorf("exit code %d, want 0\n%s%s", code, stdout, stderr)
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) != 1 || left[0].Name() != "kubebuilder-envtest" {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}
