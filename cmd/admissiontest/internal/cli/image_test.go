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
