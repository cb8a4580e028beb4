package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

func TestImage(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/hooks:v1"
	path := filepath.Join(t.TempDir(), "hooks.tar")
	got := execute(t.Context(), nil, "image", "--tarball", path, "--push", ref)
	got.check(t, exitPass)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "localhost/admissiontest-hooks:") || !strings.HasPrefix(lines[1], strings.TrimSuffix(ref, ":v1")+"@sha256:") {
		t.Errorf("got %q, want the reference in the file and the one pushed", lines)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 25<<20 {
		t.Errorf("got %v and %v, want a file of at most 25 MiB", info, err)
	}
	named := execute(t.Context(), nil, "image", "--tarball", path, "--tag", "example.com/mine:v2")
	named.check(t, exitPass)
	if named.stdout != "example.com/mine:v2\n" {
		t.Errorf("got %q, want the tag", named.stdout)
	}
}

func TestImageErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nowhere":     {nil, exitUsage, "want --push REFERENCE, --tarball FILE, or both"},
		"argument":    {[]string{"x"}, exitUsage, "takes no arguments; got x"},
		"platform":    {[]string{"--tarball", "x", "--platform", "windows/amd64"}, exitUsage, `--platform "windows/amd64": want one of linux/amd64`},
		"tag alone":   {[]string{"--push", "x", "--tag", "y"}, exitUsage, "--tag needs --tarball"},
		"no folder":   {[]string{"--tarball", filepath.Join(t.TempDir(), "none", "x.tar")}, exitInfrastructure, "write tarball"},
		"no registry": {[]string{"--push", "localhost:1/hooks:v1"}, exitInfrastructure, "push image to localhost:1/hooks:v1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"image"}, test.args...)...)
			got.check(t, test.code)
			if !strings.Contains(got.stderr, test.says) || got.stdout != "" {
				t.Errorf("got %q and %q, want %q", got.stdout, got.stderr, test.says)
			}
		})
	}
}
