package binaries

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// pluginModule writes a go.mod in which kube-apiserver builds with plugins. Kubernetes' modules
// keep exactly the versions that Kubernetes requires, which the module cannot do by requirements:
// it replaces each one by itself. The other modules of the plugins have the versions that the
// plugins' own modules select. The error is an ErrBadPlugin if a plugin needs a newer version of
// a library of Kubernetes.
func pluginModule(dir string, p program, original *modfile.File, packages []pluginPackage) error {
	if err := temporaryModule(dir, p, original); err != nil {
		return err
	}
	f, err := ReadGoMod(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	pins := map[string]string{p.module: p.version}
	for _, r := range f.Require {
		pins[r.Mod.Path] = r.Mod.Version
	}
	for _, path := range slices.Sorted(maps.Keys(pins)) {
		if err := f.AddReplace(path, "", path, pins[path]); err != nil {
			return fmt.Errorf("write go.mod: %w", err)
		}
	}
	for _, one := range packages {
		if err := one.conflict(pins, p); err != nil {
			return fmt.Errorf("plugin package %s: %w", one.Package, err)
		}
		if err := one.require(f, pins); err != nil {
			return fmt.Errorf("plugin package %s: %w", one.Package, err)
		}
	}
	return WriteGoMod(dir, f)
}

// require adds the modules of a plugin that Kubernetes does not have, and the replacements of its
// own module.
func (p pluginPackage) require(f *modfile.File, pins map[string]string) error {
	own, err := p.root()
	if err != nil {
		return err
	}
	for _, r := range own.file.Replace {
		if _, kubernetes := pins[r.Old.Path]; kubernetes {
			continue
		}
		to := r.New.Path
		if r.New.Version == "" && !filepath.IsAbs(to) {
			to = filepath.Join(own.dir, filepath.FromSlash(to))
		}
		if err := f.AddReplace(r.Old.Path, r.Old.Version, to, r.New.Version); err != nil {
			return fmt.Errorf("write go.mod: %w", err)
		}
	}
	for _, m := range p.modules() {
		if _, kubernetes := pins[m.Path]; kubernetes {
			continue
		}
		version := m.Version
		if m.Main || version == "" {
			version = "v0.0.0"
			if err := f.AddReplace(m.Path, "", m.Dir, ""); err != nil {
				return fmt.Errorf("write go.mod: %w", err)
			}
		}
		if i := slices.IndexFunc(f.Require, func(r *modfile.Require) bool { return r.Mod.Path == m.Path }); i < 0 || semver.Compare(version, f.Require[i].Mod.Version) > 0 {
			if err := f.AddRequire(m.Path, version); err != nil {
				return fmt.Errorf("write go.mod: %w", err)
			}
		}
		if f.Go == nil || m.GoVersion != "" && semver.Compare("v"+m.GoVersion, "v"+f.Go.Version) > 0 {
			if err := f.AddGoStmt(m.GoVersion); err != nil {
				return fmt.Errorf("write go.mod: %w", err)
			}
		}
	}
	return nil
}

// overlay writes an overlay for `go` in which the local modules of plugins require nothing, and
// returns its path. Their requirements can be for tests, and would raise the versions of
// Kubernetes' modules. The code of these would stay the same, because they are replaced; but
// everything would be compiled again, because `go` notes the raised version.
func overlay(dir string, packages []pluginPackage) (string, error) {
	replaced := map[string]string{}
	for _, p := range packages {
		for _, m := range p.modules() {
			if !m.local() || replaced[m.GoMod] != "" {
				continue
			}
			text := "module " + modfile.AutoQuote(m.Path) + "\n"
			if m.GoVersion != "" {
				text += "\ngo " + m.GoVersion + "\n"
			}
			path := filepath.Join(dir, fmt.Sprintf("overlay%d.mod", len(replaced)))
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return "", fmt.Errorf("write the overlay: %w", err)
			}
			replaced[m.GoMod] = path
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return path, nil
}

// modules returns the modules of a plugin's packages.
func (p pluginPackage) modules() []*listedModule {
	var all []*listedModule
	for _, l := range p.all {
		if l.Module != nil && !slices.ContainsFunc(all, func(m *listedModule) bool { return m.Path == l.Module.Path }) {
			all = append(all, l.Module)
		}
	}
	return all
}

// rootModule is the go.mod of the module in which the plugin was listed.
type rootModule struct {
	dir  string
	file *modfile.File
}

// root returns the module in which the plugin was listed: its own, or one that requires it.
func (p pluginPackage) root() (rootModule, error) {
	file, err := ReadGoMod(p.gomod)
	return rootModule{filepath.Dir(p.gomod), file}, err
}

// conflict returns an ErrBadPlugin if the plugin's own module selects a newer version of a library of Kubernetes, or a
// copy in a folder.
func (p pluginPackage) conflict(pins map[string]string, kubernetes program) error {
	for _, m := range p.modules() {
		has, want := pins[m.Path], m.Version
		if has == "" || !strings.HasPrefix(m.Path, "k8s.io/") {
			continue
		}
		if r := m.Replace; r != nil && r.Version == "" {
			return fmt.Errorf("%w: %s is replaced by %s; Kubernetes %s has %s: remove the replacement", ErrBadPlugin, m.Path, r.Path, kubernetes.version, has)
		} else if r != nil {
			want = r.Version
		}
		if semver.Compare(want, has) > 0 {
			return fmt.Errorf("%w: its module requires %s %s; Kubernetes %s has %s, and the plugin must be built with that: require at most that version, or build the Kubernetes that has it",
				ErrBadPlugin, m.Path, want, kubernetes.version, has)
		}
	}
	return nil
}
