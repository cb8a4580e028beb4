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
				{"run", "order", "--target", "kind", "--kind-config", file},
				{"run", "order", "--install", file},
				{"explain", file},
				{"report", "diff", file, file},
				{"import", "kyverno", file},
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

// What others wrote and the operator installs or converts leads to no file outside of its tree.
func TestLinksOfInstallAndImport(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	repository := t.TempDir()
	for name, content := range map[string]string{
		secret: "password: hunter2",
		filepath.Join(repository, "install", "good.yaml"): "{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}",
		filepath.Join(repository, "kyverno-test.yaml"):    "{apiVersion: cli.kyverno.io/v1alpha1, kind: Test, metadata: {name: a}, policies: [policy.yaml], resources: [], results: []}",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"install/link.yaml", "policy.yaml"} {
		if err := os.Symlink(secret, filepath.Join(repository, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(repository, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(repository, secret)
	if err != nil {
		t.Fatal(err)
	}
	upward := filepath.Join(repository, "upward.yaml")
	if err := os.WriteFile(upward, []byte("{apiVersion: cli.kyverno.io/v1alpha1, kind: Test, metadata: {name: a}, policies: ["+relative+"], resources: [], results: []}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "order", "--install", filepath.Join(repository, "install")},
		{"import", "kyverno", filepath.Join(repository, "kyverno-test.yaml")},
		{"import", "kyverno", upward},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			got := onCatalogue(t.Context(), args...)
			got.check(t, got.code, "outside of the tree")
			if got.code != 2 || strings.Contains(got.stdout+got.stderr, "hunter2") {
				t.Errorf("%v: exit code %d; want 2, and not the content", args, got.code)
			}
		})
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
