package doctor

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// TestDefaultPlugins compares the plugins with the ones that kube-apiserver says it enables by default.
func TestDefaultPlugins(t *testing.T) {
	assets, err := binaries.Ensure(t.Context(), binaries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), assets.KubeAPIServer(), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`in addition to default enabled ones \(([^)]*)\)`).FindSubmatch(help)
	if found == nil {
		t.Fatal("kube-apiserver --help has no list of plugins that are enabled by default")
	}
	want, got := strings.Split(string(found[1]), ", "), defaultPlugins()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
