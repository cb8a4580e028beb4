package assets

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// throwaway is the path of the module that programs are built in.
const throwaway = "admissiontest.dev/throwaway"

// program is one main package to build.
type program struct {
	name    string // of the executable
	module  string // its module
	version string // the module's, "v1.36.3"
	pkg     string // its main package
	flags   string // for the linker, besides those that drop debugging symbols
	staging string // the version to use where the module requires v0.0.0
}

// programsFor lists what is built for a Kubernetes version.
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

// emptyModule writes a go.mod good enough to download another module from.
func emptyModule(dir string) error {
	f := new(modfile.File)
	if err := f.AddModuleStmt(throwaway); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	return writeModule(dir, f)
}

// throwawayModule writes a go.mod from which p builds as its own module would:
// the same language version, the same GODEBUG, the same requirement of
// everything. `go` ignores the replacements in a go.mod that is not the main
// one, and Kubernetes replaces its own libraries, all required at v0.0.0, by
// directories beside it: they are replaced by their published versions instead.
func throwawayModule(dir string, p program, theirs *modfile.File) error {
	ours := new(modfile.File)
	if err := ours.AddModuleStmt(throwaway); err != nil {
		return fmt.Errorf("write go.mod for %s: %w", p.module, err)
	}
	if theirs.Go != nil {
		if err := ours.AddGoStmt(theirs.Go.Version); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	for _, setting := range theirs.Godebug {
		if err := ours.AddGodebug(setting.Key, setting.Value); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	ours.AddNewRequire(p.module, p.version, false)
	for _, r := range theirs.Require {
		if r.Mod.Version != "v0.0.0" || p.staging == "" {
			ours.AddNewRequire(r.Mod.Path, r.Mod.Version, true)
			continue
		}
		ours.AddNewRequire(r.Mod.Path, p.staging, true)
		if err := ours.AddReplace(r.Mod.Path, "", r.Mod.Path, p.staging); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	for _, x := range theirs.Exclude {
		if err := ours.AddExclude(x.Mod.Path, x.Mod.Version); err != nil {
			return fmt.Errorf("write go.mod for %s: %w", p.module, err)
		}
	}
	return writeModule(dir, ours)
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

// readModule reads the go.mod of a module that was downloaded.
func readModule(path string) (*modfile.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	f, err := modfile.Parse(path, text, nil)
	if err != nil { // a directive newer than this program: do without the rarer ones
		f, err = modfile.ParseLax(path, text, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	return f, nil
}
