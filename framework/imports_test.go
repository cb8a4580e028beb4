package framework_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path of this module.
const module = "github.com/admissiontest/admissiontest"

// layers has the packages of this module from the bottom up. A package imports only from
// layers below its own: dependencies point one way.
func layers() [][]string {
	return [][]string{
		{"docs", "internal/cel", "internal/suggest", "internal/redact", "internal/kubeapiserver", "internal/userfile", "internal/kinds"},
		{"internal/processes"},
		{"internal/kubeapiserver/observe", "internal/object", "internal/match", "internal/runid", "hack/bystander", "internal/golden", "internal/minor", "internal/apiserver/binaries", "internal/relay"},
		{"framework", "framework/scenario/internal/document", "internal/redact", "fakes/internal/apiserver"},
		{"framework/internal/plugintrace", "internal/rule", "fakes/internal/informer"},
		{
			"framework/hook", "internal/apiserver/client", "framework/envtest", "framework/kind",
			"internal/report", "internal/relay/cmd/relay", "scenarios", "fakes", "framework/reach", "internal/vary",
		},
		{"framework/scenario", "framework/harness", "internal/apiserver/install", "internal/testserver", "fakes/effectiveversion"},
		{"internal/apiserver/fence", "framework/matchers", "internal/review", "internal/shipped", "internal/target", "suites/contract/internal/check"},
		{"framework/ready", "internal/doctor", "internal/target/targettest", "suites/webhook/internal/check", "suites/contract/internal/rules", "internal/engine/expect"},
		{"internal/apiserver", "suites/contract", "suites/webhook/internal/rules"},
		{"internal/engine/execution", "suites/contract/specs", "suites/webhook"},
		{"internal/engine"},
		{"internal/providers", "internal/e2e", "internal/policymutants"},
		{"suites/policy/internal/rules", "suites/conformance/internal/plan", "hack/proof", "hack/bench"},
		{"suites/conformance", "suites/policy"},
		{"suites/conformance/ginkgo", "hack/importers", "hack/pairs", "cmd/admissiontest/internal/cli"},
		{"cmd/admissiontest"},
	}
}

// homes has the packages that may import a library. Only internal/apiserver and its rooms import
// these rooms.
func homes() map[string][]string {
	all := libraries()
	rooms := []string{"client", "fence", "install"}
	own := []string{"internal/apiserver"}
	for _, room := range rooms {
		own = append(own, "internal/apiserver/"+room)
	}
	for _, room := range rooms {
		all[module+"/internal/apiserver/"+room] = own
	}
	all[module+"/internal/apiserver/client"] = append(own, "framework/ready")
	return all
}

func libraries() map[string][]string {
	return map[string][]string{
		"github.com/onsi/ginkgo/v2":      {"suites/conformance/ginkgo", "suites/contract/specs"},
		"github.com/onsi/gomega":         {"framework/matchers"},
		"sigs.k8s.io/controller-runtime": {"framework/envtest"},
		"k8s.io/streaming":               {}, // Kubernetes has it since 1.36
		"github.com/spf13/cobra":         {"cmd/admissiontest/internal/cli"},
		"sigs.k8s.io/kind":               {"framework/kind"},
		"k8s.io/kubernetes":              {},
		"testing":                        {"suites/conformance", "suites/contract", "suites/webhook", "suites/policy", "internal/golden", "internal/testserver", "hack/importers"},
		"k8s.io/client-go":               {"framework/ready", "internal/minor", "internal/kinds", "internal/doctor", "internal/review", "framework/hook", "framework/reach", "internal/apiserver/client", "internal/apiserver/fence", "internal/testserver", "internal/apiserver", "framework/envtest", "framework/kind", "internal/providers", "suites/conformance", "hack/bench", "hack/bystander", "cmd/admissiontest/internal/cli", "fakes", "fakes/internal/apiserver", "fakes/internal/informer", "framework/harness", "suites/contract/internal/check", "suites/contract/internal/rules", "suites/webhook/internal/check"},
		"k8s.io/apiserver":               {"internal/kubeapiserver/observe", "internal/minor", "fakes", "fakes/internal/apiserver", "fakes/effectiveversion", "framework/harness", "framework/reach", "internal/cel", "internal/vary", "cmd/admissiontest/internal/cli", "suites/contract/internal/check", "suites/contract/internal/rules", "suites/policy/internal/rules"},
		// The engine knows targets by the interfaces of internal/target.
		module + "/internal/apiserver": {"internal/providers", "cmd/admissiontest/internal/cli"},
		module + "/framework/envtest":  {"hack/bench", "internal/testserver", "internal/apiserver", "internal/providers", "suites/conformance", "cmd/admissiontest/internal/cli"},
		module + "/framework/kind":     {"internal/providers", "cmd/admissiontest/internal/cli"},
		module + "/internal/apiserver/binaries": {
			"framework/envtest", "internal/testserver",
			"internal/providers", "suites/conformance", "suites/policy", "hack/bench", "hack/proof", "hack/importers", "cmd/admissiontest/internal/cli",
		},
		"github.com/stretchr/testify":            {},
		"github.com/jstemmer/go-junit-report/v2": {"internal/report"},
		"github.com/invopop/jsonschema":          {}, // tests generate the schemas
		"github.com/santhosh-tekuri/jsonschema":  {"framework/scenario/internal/document"},
		"github.com/goccy/go-yaml":               {"cmd/admissiontest/internal/cli"},
		"github.com/google/go-containerregistry": {"internal/providers"},
		"github.com/libp2p/go-yamux/v5":          {"internal/relay"},
		"k8s.io/apiextensions-apiserver":         {},
		"gopkg.in/evanphx/json-patch.v4":         {"framework/hook", "internal/apiserver/client", "fakes/internal/apiserver", "suites/webhook/internal/check", "internal/vary"},
		"github.com/prometheus/common":           {"internal/apiserver/client"},
		"github.com/google/cel-go":               {"internal/cel", "internal/policymutants", "suites/policy/internal/rules"},
	}
}

// imports has the imports of packages, by path.
type imports map[string][]string

// violations returns each import that is not allowed, and each package that is in no
// layer.
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
			found = append(found, own+" is in no layer: add it to layers in imports_test.go")
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

// libraryOf returns the longest path in homes that contains an import.
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

// TestNothingUpward fails if a room of internal/ that framework or fakes imports imports them:
// what they need lies below them. framework/ready is no part of the vocabulary: it uses the client.
func TestNothingUpward(t *testing.T) {
	all := list(t, "./...")
	for _, found := range upward(all) {
		t.Error(found)
	}
	all[module+"/internal/suggest"] = []string{module + "/framework/hook"}
	if found := upward(all); len(found) == 0 {
		t.Error("an import of framework/hook by internal/suggest is not found")
	}
}

// upward returns each import of framework or fakes by a room of internal/ that lies below them.
func upward(all imports) []string {
	vocabulary := func(path string) bool {
		return strings.HasPrefix(path+"/", module+"/framework/") || strings.HasPrefix(path+"/", module+"/fakes/")
	}
	below := map[string]string{} // the importer of each room
	var visit func(path string)
	visit = func(path string) {
		for _, imported := range all[path] {
			if strings.HasPrefix(imported, module+"/internal/") && below[imported] == "" {
				below[imported] = path
				visit(imported)
			}
		}
	}
	for path := range all {
		if vocabulary(path) && path != module+"/framework/ready" {
			visit(path)
		}
	}
	var found []string
	for room, importer := range below {
		for _, imported := range all[room] {
			if vocabulary(imported) {
				found = append(found, room+" imports "+imported+", but lies below "+importer+", which imports it")
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestVocabularyStaysSmall fails if package framework depends on a testing framework, a
// client or a server.
func TestVocabularyStaysSmall(t *testing.T) {
	out := goList(t, "-deps", "./framework")
	if !strings.Contains(out, module+"/framework") {
		t.Fatalf("go list -deps printed no package of this module:\n%s", out)
	}
	for _, path := range strings.Fields(out) {
		for _, banned := range []string{"testing", "github.com/onsi", "k8s.io/client-go", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime", "os/exec"} {
			if path == banned || strings.HasPrefix(path, banned+"/") {
				t.Errorf("framework depends on %s", path)
			}
		}
	}
}

// TestUnitTierStaysSmall fails if the packages for plugin tests depend on what other parts
// of this module need. Not on the list is cobra, which k8s.io/component-base needs since 1.37.
func TestUnitTierStaysSmall(t *testing.T) {
	out := goList(t, "-deps", "./fakes", "./framework/harness", "./suites/contract")
	if !strings.Contains(out, module+"/suites/contract") {
		t.Fatalf("go list -deps printed no package of this module:\n%s", out)
	}
	for _, path := range strings.Fields(out) {
		for _, banned := range []string{"github.com/onsi", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/kind", "k8s.io/kubernetes", "github.com/stretchr/testify"} {
			if path == banned || strings.HasPrefix(path, banned+"/") {
				t.Errorf("./fakes, ./framework/harness or ./suites/contract depends on %s", path)
			}
		}
	}
}

// TestViolationsAreFound shows that TestImports can fail.
func TestViolationsAreFound(t *testing.T) {
	for importer, imported := range map[string]string{
		"framework":          module + "/internal/engine",
		"internal/engine":    module + "/internal/providers",
		"internal/target":    module + "/internal/engine",
		"framework/scenario": "testing",
		"internal/report":    "github.com/onsi/gomega/types",
		"framework/hook":     "sigs.k8s.io/controller-runtime/pkg/envtest",
		"internal/apiserver": "sigs.k8s.io/controller-runtime/pkg/envtest",
		"suites/conformance": "github.com/spf13/cobra",
		"internal/providers": "sigs.k8s.io/kind/pkg/cluster",
		"framework/new":      "fmt",

		"internal/engine/expect": module + "/internal/apiserver/client",

		"internal/engine/execution": module + "/internal/apiserver",
	} {
		t.Run(importer, func(t *testing.T) {
			if got := violations(imports{module + "/" + importer: {imported}}); len(got) != 1 {
				t.Errorf("%s imports %s: found %q, want one violation", importer, imported, got)
			}
		})
	}
	fine := imports{module + "/suites/conformance/ginkgo": {"github.com/onsi/ginkgo/v2/types", module + "/framework"}}
	if got := violations(fine); len(got) != 0 {
		t.Errorf("found %q, want none", got)
	}
}

// list returns the imports of each package of this module, without tests.
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

// goList runs go list in the root of the module.
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
