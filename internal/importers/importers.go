// Package importers checks that a module that uses admissiontest keeps its own versions. Its folders are
// modules that use admissiontest as another project's repository would, with that project's requirements:
// `make test-importers` tests them.
package importers

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// module is a module as `go list -m -json` prints it.
type module struct {
	Path, Version, Dir, GoMod string
}

// CheckVersions fails a test of a module whose Kubernetes libraries or controller-runtime are not those that
// a project requires: then admissiontest, which the module requires too, has raised them.
func CheckVersions(t *testing.T, project string) {
	t.Helper()
	raised, err := raised(project)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range raised {
		t.Error(one)
	}
}

// raised returns what is not as the project requires it.
func raised(project string) ([]string, error) {
	versions, err := modules()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(versions[project].GoMod)
	if err != nil {
		return nil, fmt.Errorf("read the go.mod of %s: %w", project, err)
	}
	file, err := modfile.ParseLax(versions[project].GoMod, text, nil)
	if err != nil {
		return nil, err
	}
	return compare(file, versions), nil
}

// compare returns the requirements of a go.mod on the libraries of Kubernetes that are at another version.
func compare(file *modfile.File, versions map[string]module) []string {
	var raised []string
	for _, require := range file.Require {
		path := require.Mod.Path
		if !strings.HasPrefix(path, "k8s.io/") && path != "sigs.k8s.io/controller-runtime" {
			continue
		}
		// A module from which nothing is imported is not in the list.
		if got := versions[path].Version; got != "" && got != require.Mod.Version {
			raised = append(raised, fmt.Sprintf("%s requires %s %s, and with admissiontest it gets %s", file.Module.Mod.Path, path, require.Mod.Version, got))
		}
	}
	return raised
}

// modules returns the modules of the module that is tested, by path.
func modules() (map[string]module, error) {
	output, err := exec.Command("go", "list", "-m", "-json", "all").Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	found := map[string]module{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var one module
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("read the list of modules: %w", err)
		}
		found[one.Path] = one
	}
	return found, nil
}

// RunScenarios runs the scenarios of the folder of the test on a real API server that calls a project's
// webhooks in this process. Install are the paths of its manifests, relative to its folder, and service the
// NAMESPACE/NAME of the Service that its webhook configurations name.
func RunScenarios(t *testing.T, project string, install []string, service string, webhooks http.Handler) {
	t.Helper()
	binaries, err := assets.Find(t.Context(), assets.Options{})
	if err != nil {
		t.Fatalf("find kube-apiserver: %v", err)
	}
	found, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(webhooks)
	t.Cleanup(server.Close)
	options := conformance.Options{AssetsDir: binaries.Dir, Paths: []string{"scenarios"}, Strict: true, Endpoints: map[string]framework.Endpoint{
		service: {URL: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}}
	for _, path := range install {
		options.Install = append(options.Install, filepath.Join(found[project].Dir, path))
	}
	conformance.Run(t, options)
}
