package assets

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// temporaryPath is the path of the module in which programs are built.
const temporaryPath = "admissiontest.dev/temporary"

// program is one main package to build.
type program struct {
	name    string // of the executable
	module  string // its module
	version string // of the module, "v1.36.3"
	pkg     string // its main package
	flags   string // for the linker, in addition to -s -w
	staging string // the version of modules that its go.mod requires at v0.0.0
}

// programsFor returns the programs to build for a Kubernetes version.
func programsFor(v version) []program {
	const stamp = "-X k8s.io/component-base/version."
	return []program{{
		name: apiserverName, version: v.tag(), staging: v.staging(),
		module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/kube-apiserver",
		flags: stamp + "gitVersion=" + v.tag() + " " + stamp + "gitMajor=1 " +
			stamp + "gitMinor=" + v.minor() + " " + stamp + "gitTreeState=clean",
	}, {
		name: etcdName, version: "v" + EtcdVersion,
		module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3",
	}}
}

// emptyModule writes a go.mod without requirements, in which `go mod download` works.
func emptyModule(dir string) error {
	f := new(modfile.File)
	if err := f.AddModuleStmt(temporaryPath); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	return writeModule(dir, f)
}

// temporaryModule writes a go.mod in which p builds as in its own module: with the same
// language version, GODEBUG settings and requirements. `go` only uses the replacements of
// the main module. Kubernetes requires its own libraries at v0.0.0 and replaces them with
// local directories, so the temporary module replaces them with their published versions.
func temporaryModule(dir string, p program, upstream *modfile.File) error {
	temporary := new(modfile.File)
	if err := temporary.AddModuleStmt(temporaryPath); err != nil {
		return fmt.Errorf("write go.mod for %s: %w", p.module, err)
	}
	if upstream.Go != nil {
		if err := temporary.AddGoStmt(upstream.Go.Version); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	for _, setting := range upstream.Godebug {
		if err := temporary.AddGodebug(setting.Key, setting.Value); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	temporary.AddNewRequire(p.module, p.version, false)
	for _, r := range upstream.Require {
		if r.Mod.Version != "v0.0.0" || p.staging == "" {
			temporary.AddNewRequire(r.Mod.Path, r.Mod.Version, true)
			continue
		}
		temporary.AddNewRequire(r.Mod.Path, p.staging, true)
		if err := temporary.AddReplace(r.Mod.Path, "", r.Mod.Path, p.staging); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	for _, x := range upstream.Exclude {
		if err := temporary.AddExclude(x.Mod.Path, x.Mod.Version); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	return writeModule(dir, temporary)
}

func writeModule(dir string, f *modfile.File) error {
	f.Cleanup()
	text, err := f.Format()
	if err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	return nil
}

// readModule reads the go.mod of a downloaded module.
func readModule(path string) (*modfile.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	f, err := modfile.Parse(path, text, nil)
	if err != nil { // it may have directives that this program does not know
		f, err = modfile.ParseLax(path, text, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	return f, nil
}
