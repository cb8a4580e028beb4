package doctor

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/shipped"
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

// After a refusal, no webhook is called: not of the plugins that follow, and no validating one, which come after all match conditions.
func TestWhyRefused(t *testing.T) {
	project, err := shipped.Read("testdata/cases/refusals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for want, names := range map[string][]string{ // the effects, and the names of the configurations and policies
		"called called":            {"mutating", "validating"},
		"called none refused":      {"mutating", "validating", "validating-fails"},
		"called refused none none": {"mutating", "mutating-fails", "mutating-last", "validating"},
		"called invalid none":      {"mutating", "denies", "validating"},
		"invalid called":           {"warns", "validating"},
		"called refused none":      {"mutating", "mutating-fails", "denies"},
	} {
		manifests := slices.DeleteFunc(slices.Clone(project.Manifests), func(m shipped.Manifest) bool {
			return !slices.Contains(names, (&unstructured.Unstructured{Object: m.Object}).GetName())
		})
		answer, err := Why(t.Context(), Input{Manifests: manifests}, Question{Object: named("v1", "Secret", "s", nil)})
		if err != nil {
			t.Fatal(err)
		}
		var effects []string
		for _, s := range answer.Steps {
			effects = append(effects, string(s.Effect))
		}
		if got := strings.Join(effects, " "); got != want {
			t.Errorf("%s: got %q, want %q\n%s", names, got, want, answer.Text())
		}
	}
}
