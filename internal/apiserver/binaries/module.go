package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

// temporaryPath is the path of the module in which programs are built.
const temporaryPath = "admissiontest.dev/temporary"

// program is one main package to build.
type program struct {
	name    string // of the executable
	module  string // its module
	version string // of the module, "v1.36.3"
	pkg     string // its main package
	main    bool   // its main package is ours: package internal/kubeapiserver
	flags   string // for the linker, in addition to -s -w
	staging string // the version of modules that its go.mod requires at v0.0.0
}

// arguments returns the arguments of `go build` that decide about the program.
func (p program) arguments() []string {
	return []string{"-trimpath", "-ldflags", strings.TrimSpace("-s -w " + p.flags)}
}

// programsFor returns the programs to build for a Kubernetes version.
func programsFor(v version) []program {
	const stamp = "-X k8s.io/component-base/version."
	return []program{{
		name: apiserverName, version: v.tag(), staging: v.staging(),
		module: "k8s.io/kubernetes", pkg: ".", main: true,
		flags: stamp + "gitVersion=" + v.tag() + " " + stamp + "gitMajor=1 " +
			stamp + "gitMinor=" + v.minor() + " " + stamp + "gitTreeState=clean",
	}, {
		name: etcdName, version: "v" + EtcdVersion,
		module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3",
	}}
}

// writeMain writes the main package of kube-apiserver, with what it needs, into a module.
func writeMain(dir string) error {
	files, err := kubeapiserver.Sources(temporaryPath)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the main package: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the main package: %w", err)
		}
	}
	return nil
}

// mainDigest returns the digest of the main package of kube-apiserver.
func mainDigest() (string, error) {
	files, err := kubeapiserver.Sources(temporaryPath)
	if err != nil {
		return "", err
	}
	return digestOfFiles(files), nil
}

// digestOfFiles returns the digest of names and contents.
func digestOfFiles(files map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(sum, "%q %d\n%s", name, len(files[name]), files[name]) // it does not fail
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// temporaryModule writes a go.mod in which p builds as in its own module.
func temporaryModule(dir string, p program, original *modfile.File) error {
	f, err := ModuleAround(temporaryPath, Module{Path: p.module, Version: p.version, Staging: p.staging}, original)
	if err != nil {
		return err
	}
	return WriteGoMod(dir, f)
}
