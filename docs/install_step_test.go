package docs_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// release writes the files of release v0.1.0: an archive in which the command is the text "released".
func release(t *testing.T, folder string, damage func(archive []byte, checksums string) string) {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	err := files.WriteHeader(&tar.Header{Name: "admissiontest", Mode: 0o755, Size: 8})
	_, written := files.Write([]byte("released"))
	if err := errors.Join(err, written, files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("admissiontest_0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	checksums := fmt.Sprintf("%064d  other.tar.gz\n%x  %s\n", 0, sha256.Sum256(archive.Bytes()), name)
	if damage != nil {
		checksums = damage(archive.Bytes(), checksums)
	}
	for name, content := range map[string][]byte{name: archive.Bytes(), "checksums.txt": []byte(checksums)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The first step of the action installs a release only if its archive has the right digest. It builds what has no release from
// the source of the action, and refuses a version that has neither.
func TestInstallStep(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	install := readAction(t).Runs.Steps[0].Run
	for name, test := range map[string]struct {
		version, ref     string
		damage           func([]byte, string) string
		installs, makes  bool
		output, makesDir string
	}{
		"release of the action": {ref: "v0.1.0", installs: true},
		"release by name":       {version: "v0.1.0", ref: "main", installs: true},
		"changed archive": {ref: "v0.1.0", output: "FAILED", damage: func(archive []byte, checksums string) string {
			archive[len(archive)-1]++
			return checksums
		}},
		"not in checksums.txt": {ref: "v0.1.0", output: "no properly formatted", damage: func([]byte, string) string { return "<html>" }},
		"branch":               {ref: "main", makes: true, makesDir: "action/../../.."},
		"tag without release":  {ref: "v0.2.0", makes: true, makesDir: "action/../../.."},
		"local action":         {makes: true, makesDir: "action/../../.."},
		"checkout":             {version: "checkout", makes: true, makesDir: "workspace"},
		"no such release":      {version: "v0.2.0", ref: "main", output: "::error::admissiontest has no release v0.2.0"},
		"no version":           {version: "../v0.1.0", ref: "main", output: "::error::"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			releases := filepath.Join(root, "releases", "v0.1.0")
			if err := os.MkdirAll(releases, 0o700); err != nil {
				t.Fatal(err)
			}
			release(t, releases, test.damage)
			for program, script := range map[string]string{ // curl OPTIONS -o FILE URL
				"curl": `cp "` + root + `/releases/${6##*/download/}" "$5" 2>/dev/null || exit 22`,
				"make": `echo "$*" >"` + root + `/made"`,
			} {
				if err := os.WriteFile(filepath.Join(root, program), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			step := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", install)
			step.Env = []string{
				"PATH=" + root + ":" + os.Getenv("PATH"), "RUNNER_TEMP=" + root, "GITHUB_PATH=" + root + "/path", "GITHUB_WORKSPACE=" + root + "/workspace",
				"GITHUB_ACTION_PATH=" + root + "/action", "VERSION=" + test.version, "ACTION_REF=" + test.ref,
			}
			output, err := step.CombinedOutput()
			if (err == nil) != (test.installs || test.makes) || !strings.Contains(string(output), test.output) {
				t.Errorf("the step ended with %v, want output with %q:\n%s", err, test.output, output)
			}
			installed, _ := os.ReadFile(filepath.Join(root, "admissiontest-bin", "admissiontest"))
			if (string(installed) == "released") != test.installs {
				t.Errorf("installed %q, want it: %t", installed, test.installs)
			}
			made, _ := os.ReadFile(filepath.Join(root, "made"))
			if strings.HasPrefix(string(made), "-C "+root+"/"+test.makesDir+" build") != test.makes {
				t.Errorf("make was called with %q, want it: %t", made, test.makes)
			}
		})
	}
}
