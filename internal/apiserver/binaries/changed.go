package binaries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Source is the module from which Build compiles kube-apiserver, with copies of modules of Kubernetes whose
// files can be changed. It is for tests of tests: does a suite notice the change? Its methods must not be
// called at the same time.
type Source struct {
	t       *toolchain
	p       program
	dir     string
	folders map[string]string
	plain   Assets
}

// OpenSource writes the module into an empty folder, and copies the modules, such as k8s.io/apiserver,
// into it. It also builds the unchanged programs, unless the cache has them. It returns the errors of
// Build.
func OpenSource(ctx context.Context, o Options, dir string, modules ...string) (*Source, error) {
	o.ObservePlugins = true
	plain, err := Build(ctx, o)
	if err != nil {
		return nil, err
	}
	j, err := newJob(o)
	if err != nil {
		return nil, err
	}
	s := &Source{plain: plain, p: programsFor(j.version)[0], dir: filepath.Join(dir, "module"), folders: map[string]string{}}
	scratch := filepath.Join(dir, "scratch")
	if err := errors.Join(os.Mkdir(s.dir, 0o755), os.Mkdir(scratch, 0o755)); err != nil {
		return nil, fmt.Errorf("make a temporary module: %w", err)
	}
	if s.t, err = newToolchain(j, scratch); err != nil {
		return nil, err
	}
	original, err := s.t.download(ctx, s.p, s.dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(temporaryModule(s.dir, s.p, original), writeMain(s.dir)); err != nil {
		return nil, err
	}
	if _, err = s.t.resolve(ctx, s.p, s.dir); err != nil {
		return nil, err
	}
	return s, s.copyModules(ctx, filepath.Join(dir, "copies"), modules)
}

// copyModules copies modules and makes the module use the copies.
func (s *Source) copyModules(ctx context.Context, to string, modules []string) error {
	used, err := ReadModule(filepath.Join(s.dir, "go.mod"))
	if err != nil {
		return err
	}
	for _, module := range modules {
		out, err := s.t.run(ctx, goCall{dir: s.dir, doing: "finding " + module, args: []string{"list", "-m", "-json", module}})
		var found struct{ Dir string }
		if err == nil {
			err = json.Unmarshal(out, &found)
		}
		if err != nil {
			return s.t.failed(ctx, s.p, ErrNoModules, err)
		}
		s.folders[module] = filepath.Join(to, filepath.FromSlash(module))
		if err := os.CopyFS(s.folders[module], os.DirFS(found.Dir)); err != nil {
			return fmt.Errorf("copy module %s: %w", module, err)
		}
		if err := used.AddReplace(module, "", s.folders[module], ""); err != nil {
			return fmt.Errorf("use the copy of module %s: %w", module, err)
		}
	}
	return WriteModule(s.dir, used)
}

// Unchanged returns the programs without a change.
func (s *Source) Unchanged() Assets { return s.plain }

// Folder returns the folder with the copy of a module, or "".
func (s *Source) Folder(module string) string { return s.folders[module] }

// Build compiles kube-apiserver, as the copies are now, into a folder, which it makes. The folder also
// gets etcd. The error is an ErrBuild if the files do not compile.
func (s *Source) Build(ctx context.Context, dir string) (Assets, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Assets{}, fmt.Errorf("make a folder for kube-apiserver: %w", err)
	}
	args := []string{"build", "-trimpath", "-ldflags", strings.TrimSpace("-s -w " + s.p.flags), "-o", filepath.Join(dir, s.p.name), s.p.pkg}
	if _, err := s.t.run(ctx, goCall{dir: s.dir, doing: "compiling a changed kube-apiserver", args: args}); err != nil {
		return Assets{}, s.t.failed(ctx, s.p, ErrBuild, err)
	}
	if err := copyFile(s.plain.Etcd(), filepath.Join(dir, etcdName)); err != nil && !errors.Is(err, os.ErrExist) {
		return Assets{}, err
	}
	made := Assets{Dir: dir, Version: s.plain.Version, Source: SourceBuilt, ObservesPlugins: true}
	return made, seal(dir, manifest{Version: made.Version})
}
