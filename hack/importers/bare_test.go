package importers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const bareTest = `package bare

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

func TestContract(t *testing.T) {
	config := corev1.ConfigMap{}
	config.APIVersion, config.Kind, config.Name = "v1", "ConfigMap", "sample"
	_ = fake.NewClientset(&config)
	report := webhook.Check(t.Context(), webhook.Subject{Handler: http.NotFoundHandler(), Kind: webhook.Validating}, webhook.Only("WH-PROTO-1"))
	if len(report.Misuse) != 1 {
		t.Errorf("got %v; want that it has no samples", report.Misuse)
	}
}
`

// A module without k8s.io/apiserver follows the first lines of docs/webhooks.md: k8s.io/apiserver at the version of its client-go.
func TestBare(t *testing.T) {
	if os.Getenv("ADMISSIONTEST_IMPORTERS") == "" {
		t.Skip("ADMISSIONTEST_IMPORTERS is not set: make test-importers compiles k8s.io/apiserver at three versions")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v0.35.4", "v0.36.3", "v0.37.2"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			const path = "github.com/admissiontest/admissiontest"
			module := fmt.Sprintf("module example.com/bare\n\ngo 1.26\n\nrequire (\n\tk8s.io/api %s\n\tk8s.io/client-go %[1]s\n)\n\nreplace %s => %s\n", version, path, root)
			for name, text := range map[string]string{"go.mod": module, "bare_test.go": bareTest} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range []string{"get k8s.io/apiserver@" + version, "mod tidy", "test -vet=off ./..."} {
				command := exec.CommandContext(t.Context(), "go", strings.Fields(args)...)
				command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod")
				if said, err := command.CombinedOutput(); err != nil {
					t.Fatalf("go %s: %v\n%s", args, err, said)
				}
			}
		})
	}
}
