package binaries

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// Module is the module of a program.
type Module struct {
	// Path and Version identify the module: "k8s.io/kubernetes", "v1.36.3".
	Path, Version string
	// Staging is the version of the modules that its go.mod requires at v0.0.0 and replaces by
	// folders: "v0.36.3". Empty means that there are none.
	Staging string
}

// EmptyModule returns a go.mod without requirements, in which `go mod download` works.
func EmptyModule(path string) (*modfile.File, error) {
	f := new(modfile.File)
	if err := f.AddModuleStmt(path); err != nil {
		return nil, fmt.Errorf("write go.mod: %w", err)
	}
	return f, nil
}

// ModuleAround returns the go.mod of a module with the given path in which the packages of m build as in
// m itself, whose go.mod is original: with the same language version, GODEBUG settings and
// requirements. `go` only uses the replacements of the main module. Kubernetes requires its own
// libraries at v0.0.0 and replaces them with local directories, so the temporary module replaces
// them with their published versions.
func ModuleAround(path string, m Module, original *modfile.File) (*modfile.File, error) {
	f, err := EmptyModule(path)
	if err != nil {
		return nil, err
	}
	if original.Go != nil {
		if err := f.AddGoStmt(original.Go.Version); err != nil {
			return nil, fmt.Errorf("write go.mod for %s: %w", m.Path, err)
		}
	}
	for _, setting := range original.Godebug {
		if err := f.AddGodebug(setting.Key, setting.Value); err != nil {
			return nil, fmt.Errorf("write go.mod for %s: %w", m.Path, err)
		}
	}
	f.AddNewRequire(m.Path, m.Version, false)
	for _, r := range original.Require {
		if r.Mod.Version != "v0.0.0" || m.Staging == "" {
			f.AddNewRequire(r.Mod.Path, r.Mod.Version, true)
			continue
		}
		f.AddNewRequire(r.Mod.Path, m.Staging, true)
		if err := f.AddReplace(r.Mod.Path, "", r.Mod.Path, m.Staging); err != nil {
			return nil, fmt.Errorf("write go.mod for %s: %w", m.Path, err)
		}
	}
	for _, x := range original.Exclude {
		if err := f.AddExclude(x.Mod.Path, x.Mod.Version); err != nil {
			return nil, fmt.Errorf("write go.mod for %s: %w", m.Path, err)
		}
	}
	return f, nil
}

// WriteGoMod writes a go.mod into a folder.
func WriteGoMod(dir string, f *modfile.File) error {
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

// ReadGoMod reads a go.mod, for instance that of a downloaded module.
func ReadGoMod(path string) (*modfile.File, error) {
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
