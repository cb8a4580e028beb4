package framework_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path of this module.
const module = "github.com/admissiontest/admissiontest"

// layers orders the packages of this module from the bottom up. A package imports
// only from layers below its own, so that dependencies point one way.
func layers() [][]string {
	return [][]string{
		{"framework", "framework/suggest", "framework/cluster/assets", "framework/cluster/service/internal/relay", "framework/cluster/service/image", "internal/bystander", "internal/golden", "internal/minor"},
		{"framework/match", "framework/hook", "framework/report", "framework/cluster/assets/download", "framework/cluster/kind", "framework/cluster/service/relay", "scenarios", "fakes"},
		{"framework/scenario", "framework/cluster", "framework/harness", "fakes/effectiveversion"},
		{"framework/engine/judge", "framework/cluster/envtest", "framework/cluster/service", "framework/matchers", "suites/contract"},
		{"framework/engine", "suites/contract/specs", "examples/plugin"},
		{"framework/engine/provider"},
		{"suites/conformance", "internal/bench", "cmd/admissiontest/internal/cli"},
		{"cmd/admissiontest"},
	}
}

// homes says which packages of ours may import a library.
func homes() map[string][]string {
	return map[string][]string{
		"github.com/onsi/ginkgo/v2":                          {"suites/conformance", "suites/contract/specs"},
		"github.com/onsi/gomega":                             {"suites/conformance", "framework/matchers"},
		"sigs.k8s.io/controller-runtime":                     {"framework/cluster/envtest"},
		"sigs.k8s.io/controller-runtime/tools/setup-envtest": {"framework/cluster/assets/download"},
		"github.com/spf13/cobra":                             {"cmd/admissiontest/internal/cli"},
		"github.com/vbauerster/mpb/v8":                       {"cmd/admissiontest/internal/cli"},
		"sigs.k8s.io/kind":                                   {"framework/cluster/kind"},
		"k8s.io/kubernetes":                                  {},
		"testing":                                            {"suites/conformance", "suites/contract", "internal/golden"},
		"k8s.io/client-go":                                   {"framework/cluster", "framework/cluster/envtest", "framework/cluster/kind", "framework/cluster/service", "framework/engine/provider", "suites/conformance", "internal/bench", "internal/bystander", "cmd/admissiontest/internal/cli", "fakes", "suites/contract", "examples/plugin"},
		"k8s.io/apiserver":                                   {"internal/minor", "fakes", "fakes/effectiveversion", "framework/harness", "suites/contract", "suites/contract/specs", "examples/plugin"},
		module + "/framework/cluster/assets/download":        {"cmd/admissiontest/internal/cli"},
		"github.com/stretchr/testify":                        {},
		"github.com/jstemmer/go-junit-report/v2":             {"framework/report"},
		"github.com/invopop/jsonschema":                      {"framework/scenario", "framework/hook"},
		"github.com/goccy/go-yaml":                           {"framework/scenario", "framework/hook", "cmd/admissiontest/internal/cli"},
		"github.com/google/go-containerregistry":             {"framework/cluster/service/image"},
		"github.com/hashicorp/yamux":                         {"framework/cluster/service/internal/relay"},
		"k8s.io/apiextensions-apiserver":                     {},
		"github.com/evanphx/json-patch/v5":                   {"framework/hook"},
	}
}

// imports is what a package imports, by its path.
type imports map[string][]string

// violations returns each import that a rule forbids, and each package that no
// rule knows.
func violations(all imports) []string {
	layer := map[string]int{}
	for i, names := range layers() {
		for _, name := range names {
			layer[name] = i
		}
	}
	var found []string
	for importer, imported := range all {
		own := strings.TrimPrefix(importer, module+"/")
		if _, known := layer[own]; !known {
			found = append(found, own+" is in no layer: say in imports_test.go where it belongs")
			continue
		}
		for _, path := range imported {
			if inner, ours := strings.CutPrefix(path, module+"/"); ours {
				if below, known := layer[inner]; known && below >= layer[own] {
					found = append(found, own+" imports "+inner+", which is not below it")
				}
			}
			if library, ok := libraryOf(path); ok && !slices.Contains(homes()[library], own) {
				found = append(found, own+" imports "+path+", which only "+strings.Join(homes()[library], ", ")+" may")
			}
		}
	}
	slices.Sort(found)
	return found
}

// libraryOf returns the longest path of homes that an import lies under.
func libraryOf(path string) (string, bool) {
	longest := ""
	for library := range homes() {
		if (path == library || strings.HasPrefix(path, library+"/")) && len(library) > len(longest) {
			longest = library
		}
	}
	return longest, longest != ""
}

func TestImports(t *testing.T) {
	for _, violation := range violations(list(t, "./...")) {
		t.Error(violation)
	}
}

// TestVocabularyStaysSmall fails when who imports the words alone would inherit
// a testing framework, a client or a server.
func TestVocabularyStaysSmall(t *testing.T) {
	out := goList(t, "-deps", "./framework")
	if !strings.Contains(out, module+"/framework") {
		t.Fatalf("go list -deps printed no package of ours:\n%s", out)
	}
	for _, path := range strings.Fields(out) {
		for _, banned := range []string{"testing", "github.com/onsi", "k8s.io/client-go", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime", "os/exec"} {
			if path == banned || strings.HasPrefix(path, banned+"/") {
				t.Errorf("framework depends on %s", path)
			}
		}
	}
}

// TestPluginAuthorsInheritLittle fails when who tests a plugin would inherit what
// other parts of this project need.
func TestPluginAuthorsInheritLittle(t *testing.T) {
	out := goList(t, "-deps", "./fakes", "./framework/harness", "./suites/contract")
	if !strings.Contains(out, module+"/suites/contract") {
		t.Fatalf("go list -deps printed no package of ours:\n%s", out)
	}
	for _, path := range strings.Fields(out) {
		for _, banned := range []string{"github.com/onsi", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/kind", "github.com/spf13/cobra", "k8s.io/kubernetes", "github.com/stretchr/testify"} {
			if path == banned || strings.HasPrefix(path, banned+"/") {
				t.Errorf("./fakes, ./framework/harness or ./suites/contract depends on %s", path)
			}
		}
	}
}

// TestViolationsAreFound is the must-fail fixture of TestImports.
func TestViolationsAreFound(t *testing.T) {
	for importer, imported := range map[string]string{
		"framework":                 module + "/framework/engine",
		"framework/engine":          module + "/framework/engine/provider",
		"framework/scenario":        "testing",
		"framework/report":          "github.com/onsi/gomega/types",
		"framework/hook":            "sigs.k8s.io/controller-runtime/pkg/envtest",
		"framework/cluster":         "sigs.k8s.io/controller-runtime/tools/setup-envtest/store",
		"suites/conformance":        "github.com/spf13/cobra",
		"framework/engine/provider": "sigs.k8s.io/kind/pkg/cluster",
		"framework/cluster/new":     "fmt",
	} {
		if got := violations(imports{module + "/" + importer: {imported}}); len(got) != 1 {
			t.Errorf("%s imports %s: found %q, want one violation", importer, imported, got)
		}
	}
	fine := imports{module + "/suites/conformance": {"github.com/onsi/ginkgo/v2/types", module + "/framework", "testing"}}
	if got := violations(fine); len(got) != 0 {
		t.Errorf("found %q, want none", got)
	}
}

// list returns what each package of this module imports, tests left out.
func list(t *testing.T, pattern string) imports {
	t.Helper()
	all := imports{}
	for line := range strings.Lines(goList(t, "-f", `{{if .GoFiles}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, pattern)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all[fields[0]] = fields[1:]
		}
	}
	if len(all) < len(layers()) {
		t.Fatalf("go list printed %d packages, want all of this module", len(all))
	}
	return all
}

// goList runs go list at the root of the module.
func goList(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e"}, arguments...)...)
	command.Dir = ".."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("run %s: %v", command, err)
	}
	return string(out)
}
