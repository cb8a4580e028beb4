// Package importers has what its modules share: each uses admissiontest as the repository of a project would, with
// the project's requirements and nothing patched. `make test-importers` tests them.
package importers

import (
	"bytes"
	"context"
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
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/suites/conformance"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// module is a module as `go list -m -json` prints it.
type module struct{ Path, Version, Dir, GoMod string }

// modules returns the modules of the build in the working directory, by path.
func modules(ctx context.Context) (map[string]module, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-json", "all").Output()
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

// raised returns the modules that are at another version in a build than a project requires: admissiontest, which the
// build has too, raised them. Kubernetes are the libraries of Kubernetes and controller-runtime.
func raised(project *modfile.File, found map[string]module) (kubernetes, others []string) {
	for _, require := range project.Require {
		path := require.Mod.Path
		got := found[path].Version
		if got == "" || got == require.Mod.Version { // a module from which nothing is imported is not in the build
			continue
		}
		line := fmt.Sprintf("%s requires %s %s, and with admissiontest it gets %s", project.Module.Mod.Path, path, require.Mod.Version, got)
		if strings.HasPrefix(path, "k8s.io/") || path == "sigs.k8s.io/controller-runtime" {
			kubernetes = append(kubernetes, line)
		} else {
			others = append(others, line)
		}
	}
	return kubernetes, others
}

// Files returns files of a project, as they are in its module.
func Files(t *testing.T, project string, paths ...string) []webhook.Manifest {
	t.Helper()
	found, err := modules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []webhook.Manifest
	for _, path := range paths {
		all = append(all, webhook.Files(filepath.Join(found[project].Dir, path))...)
	}
	return all
}

// Versions checks that admissiontest, which is in the build of the working directory too, raises no version of a library of
// Kubernetes, or of controller-runtime, above that which a project requires. It logs which others admissiontest raises.
func Versions(t *testing.T, project string) {
	t.Helper()
	found, err := modules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(found[project].GoMod)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.ParseLax(found[project].GoMod, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, others := raised(file, found)
	if len(kubernetes) > 0 {
		t.Error(kubernetes)
	}
	t.Logf("raised, of %d modules: %d\n%s", len(file.Require), len(kubernetes)+len(others), strings.Join(others, "\n"))
}

// Scenarios runs the folder scenarios on a real API server that calls a project's webhooks. Install are paths
// of manifests in the project's folder. Its webhook configurations name the Service system/webhook-service.
func Scenarios(t *testing.T, project string, webhooks http.Handler, install ...string) {
	t.Helper()
	binaries, err := binaries.Find(t.Context(), binaries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := modules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(webhooks)
	t.Cleanup(server.Close)
	options := conformance.Options{
		Target:    conformance.Target{BinaryAssetsDirectory: binaries.Dir},
		Selection: conformance.Selection{Paths: []string{"scenarios"}},
		Subject: conformance.Subject{Endpoints: map[string]framework.Endpoint{
			"system/webhook-service": {URL: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		}},
		Report: conformance.Report{Strict: true},
	}
	for _, path := range install {
		options.Subject.Install = append(options.Subject.Install, filepath.Join(found[project].Dir, path))
	}
	conformance.Run(t, options)
}
