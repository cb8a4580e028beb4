//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
	if err := os.Truncate(large, 1<<30); err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for file, says := range map[string]string{
		pipe: "not a regular file", "/dev/zero": "not a regular file", large: "1073741824 bytes",
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			authority := filepath.Join(dir, filepath.Base(file)+".kubeconfig")
			if err := os.WriteFile(authority, []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}],
			clusters: [{name: a, cluster: {server: "https://127.0.0.1:1", certificate-authority: `+file+`}}]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"run", "order", "--known-failing", file},
				{"run", "order", "--endpoint-ca", "a/b=" + file},
				{"run", "order", "--target", "kubeconfig", "--kubeconfig", file},
				{"run", "order", "--target", "kubeconfig", "--kubeconfig", authority},
				{"run", "order", "--install", file},
				{"explain", file},
				{"report", "matrix", file, file},
			} {
				t.Run(strings.ReplaceAll(strings.Join(args, " "), dir, ""), func(t *testing.T) {
					got := onCatalogue(t.Context(), args...)
					got.check(t, got.code, says)
					if got.code != 2 && got.code != 4 {
						t.Errorf("%v: exit code %d", args, got.code)
					}
				})
			}
		})
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}

// What others wrote and the operator installs leads to no file outside of its tree.
func TestLinksOfInstall(t *testing.T) {
	secret, repository := filepath.Join(t.TempDir(), "secret.yaml"), t.TempDir()
	install := filepath.Join(repository, "install")
	for _, folder := range []string{install, filepath.Join(repository, ".git")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		secret:                              "password: hunter2",
		filepath.Join(install, "good.yaml"): "{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(install, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	got := onCatalogue(t.Context(), "run", "order", "--install", install)
	got.check(t, 2, "outside of the tree")
	if strings.Contains(got.stdout+got.stderr, "hunter2") {
		t.Error("it shows the content")
	}
}

// Nothing is made in a folder for temporary files in which another user can replace it.
func TestUnsafeTMPDIR(t *testing.T) {
	unsafe := t.TempDir()
	if err := os.Chmod(unsafe, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", unsafe)
	for _, args := range [][]string{
		{"run", "order"},
		{"run", "order", "--plugin", "../../../../examples/plugin"},
		{"serve"},
		{"image", "--tarball", filepath.Join(unsafe, "image.tar")},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), unsafe, ""), func(t *testing.T) {
			got := onCatalogue(t.Context(), args...)
			got.check(t, 4, unsafe+" can be written by every user", "set TMPDIR")
		})
	}
	if left, err := os.ReadDir(unsafe); err != nil || len(left) > 0 {
		t.Errorf("in TMPDIR: %v, %v; want nothing", left, err)
	}
}
