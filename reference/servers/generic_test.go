package servers

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// genericMain is the main package of the generic control plane.
//
//go:embed _generic/main.go
var genericMain []byte

// generic builds the generic control plane of Kubernetes, in the version of the kube-apiserver that
// the tests use, and returns it as programs that package envtest starts. It is a real API server
// other than kube-apiserver: it serves config maps, secrets, namespaces, custom resources, webhooks
// and policies, and no pods, workloads, services or nodes. The build takes seconds if Go's build
// cache has the packages of kube-apiserver, and minutes otherwise.
func generic(t *testing.T) binaries.Assets {
	t.Helper()
	found, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	programs := binaries.Assets{Dir: t.TempDir(), Version: found.Version}
	if err := os.Symlink(found.Etcd(), programs.Etcd()); err != nil {
		t.Fatal(err)
	}
	if err := buildGeneric(t.Context(), t.TempDir(), found.Version, programs.KubeAPIServer()); err != nil {
		t.Fatalf("build the generic control plane: %v", err)
	}
	return programs
}

// buildGeneric builds the generic control plane of a version of Kubernetes, "1.36.3". It makes a
// module in an empty folder. Flags and stamps are as in package binaries, so that the packages
// that kube-apiserver has too are not compiled again.
func buildGeneric(ctx context.Context, dir, version, out string) error {
	_, patch, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(patch, ".")
	kubernetes := binaries.Module{Path: "k8s.io/kubernetes", Version: "v" + version, Staging: "v0." + patch}
	const path = "admissiontest.dev/temporary"
	f, err := binaries.EmptyModule(path)
	if err != nil {
		return err
	}
	if err := binaries.WriteGoMod(dir, f); err != nil {
		return err
	}
	text, err := goTool(ctx, dir, "mod", "download", "-json", kubernetes.Path+"@"+kubernetes.Version)
	if err != nil {
		return err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal(text, &downloaded); err != nil {
		return fmt.Errorf("read the output of go mod download: %w", err)
	}
	original, err := binaries.ReadGoMod(downloaded.GoMod)
	if err != nil {
		return err
	}
	if f, err = binaries.ModuleAround(path, kubernetes, original); err != nil {
		return err
	}
	if err := binaries.WriteGoMod(dir, f); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), genericMain, 0o600); err != nil {
		return err
	}
	const stamp = "-X k8s.io/component-base/version."
	_, err = goTool(ctx, dir, "build", "-trimpath", "-ldflags",
		"-s -w "+stamp+"gitVersion="+kubernetes.Version+" "+stamp+"gitMajor=1 "+stamp+"gitMinor="+minor+" "+stamp+"gitTreeState=clean",
		"-o", out, ".")
	return err
}

// goTool runs `go` and returns its standard output.
func goTool(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, said.String())
	}
	return out, nil
}
