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

// barePlugin is a plugin with its unit test and its contract, as docs/unit-tests.md begins.
const barePlugin = `package bare

import (
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

type plugin struct{ *admission.Handler }

func newPlugin(io.Reader) (admission.Interface, error) {
	return &plugin{admission.NewHandler(admission.Create)}, nil
}

func Check(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	h := harness.New(t, harness.FromFactory(newPlugin), harness.WithWorld(fakes.NewWorld(t)))
	if result := h.Do(framework.Create(pod)); result.Err != nil {
		t.Error(result)
	}
	contract.Run(t, contract.Subject{Source: harness.FromFactory(newPlugin), Allow: []framework.Request{framework.Create(pod)}}, contract.Only("H1"))
}
`

// TestBarePlugin: the module of a plugin needs no more than go mod tidy, at each minor. It is compiled, not linked, and not run.
func TestBarePlugin(t *testing.T) {
	eachMinor(t, "require (\n\tk8s.io/api %[1]s\n\tk8s.io/apimachinery %[1]s\n\tk8s.io/apiserver %[1]s\n)", map[string]string{"bare.go": barePlugin}, func(string) []string {
		return []string{"mod tidy", "build ./..."}
	})
}

// A module without k8s.io/apiserver follows the first lines of docs/webhooks.md: k8s.io/apiserver at the version of its client-go.
func TestBare(t *testing.T) {
	eachMinor(t, "require (\n\tk8s.io/api %[1]s\n\tk8s.io/client-go %[1]s\n)", map[string]string{"bare_test.go": bareTest}, func(version string) []string {
		return []string{"get k8s.io/apiserver@" + version, "mod tidy", "test -vet=off ./..."}
	})
}

// eachMinor runs commands of go in a module with these files and versions of Kubernetes.
func eachMinor(t *testing.T, require string, files map[string]string, commands func(version string) []string) {
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
			module := fmt.Sprintf("module example.com/bare\n\ngo 1.26\n\n"+require+"\n\nreplace github.com/admissiontest/admissiontest => %[2]s\n", version, root)
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("go.mod", module)
			for name, text := range files {
				write(name, text)
			}
			for _, args := range commands(version) {
				command := exec.CommandContext(t.Context(), "go", strings.Fields(args)...)
				command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod")
				if said, err := command.CombinedOutput(); err != nil {
					t.Fatalf("go %s: %v\n%s", args, err, said)
				}
			}
		})
	}
}
