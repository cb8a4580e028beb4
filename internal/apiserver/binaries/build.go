package binaries

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// Build compiles the programs from Go modules into the cache, unless the cache has them. On
// two cores this takes about six minutes, and about twenty seconds if Go's build cache has
// the packages. It needs `go` in PATH, and a module proxy or a complete module cache.
//
// With Options.Plugins it compiles a kube-apiserver with these plugins, unless the cache has one
// that was made of the same files. It takes about ten seconds if Go's build cache has the packages
// of Kubernetes. If the environment variable GOCOVERDIR is set, the plugins are compiled with
// coverage: see "Coverage for programs" in Go's documentation. The error can also be an
// ErrBadPlugin.
//
// Options.Dir and KUBEBUILDER_ASSETS are ignored. The error is an ErrBadVersion, ErrNoToolchain, ErrNoModules, ErrNoSuchVersion, ErrBuild, or ErrDamaged if
// the built programs do not run.
func Build(ctx context.Context, o Options) (Assets, error) {
	o.Version = cmp.Or(o.Version, DefaultVersion)
	j, err := newJob(o)
	if err != nil {
		return Assets{}, err
	}
	if len(o.Plugins) > 0 {
		return j.withPlugins(ctx)
	}
	return j.build(ctx)
}

func (j *job) build(ctx context.Context) (Assets, error) {
	return j.install(ctx, func(ctx context.Context, to dirs) error {
		t, err := newToolchain(j, to.scratch)
		if err != nil {
			return err
		}
		started := time.Now()
		j.report("building the control plane %s from Go modules; the first time this takes about 6 minutes on 2 cores", j.version)
		if err := t.build(ctx, to); err != nil {
			return err
		}
		j.report("built the control plane %s in %s", j.version, elapsed(started))
		return nil
	})
}

// WriteModule writes into a folder the module from which Build compiles kube-apiserver, downloads what it needs, and
// returns arguments of `go build`. It is for tests of tests: does a suite notice a change of kube-apiserver?
func WriteModule(ctx context.Context, o Options, dir string) (arguments []string, err error) {
	j, err := newJob(o)
	if err != nil {
		return nil, err
	}
	t, err := newToolchain(j, os.TempDir())
	if err != nil {
		return nil, err
	}
	p := programsFor(j.version)[0]
	return p.arguments(), t.prepare(ctx, p, dir)
}

// build builds all programs. It downloads all modules before the first compilation, so that
// a missing one is found early.
func (t *toolchain) build(ctx context.Context, to dirs) error {
	for _, p := range programsFor(t.job.version) {
		if err := t.prepare(ctx, p, filepath.Join(to.scratch, p.name)); err != nil {
			return err
		}
	}
	for _, p := range programsFor(t.job.version) {
		started := time.Now()
		args := slices.Concat([]string{"build"}, p.arguments(), []string{"-o", filepath.Join(to.out, p.name), p.pkg})
		_, err := t.run(ctx, goCall{dir: filepath.Join(to.scratch, p.name), doing: fmt.Sprintf("compiling %s %s", p.name, p.version), args: args})
		if err != nil {
			return t.failed(ctx, p, ErrBuild, err)
		}
		t.job.report("compiled %s %s in %s", p.name, p.version, elapsed(started))
	}
	return nil
}

// prepare writes the temporary module of a program, and downloads all modules that it needs.
func (t *toolchain) prepare(ctx context.Context, p program, dir string) error {
	original, err := t.download(ctx, p, dir)
	if err != nil {
		return err
	}
	if err := temporaryModule(dir, p, original); err != nil {
		return err
	}
	if p.main {
		if err := writeMain(dir); err != nil {
			return err
		}
	}
	doing := fmt.Sprintf("fetching the modules of %s %s", p.name, p.version)
	if _, err = t.run(ctx, goCall{dir: dir, doing: doing, args: []string{"list", "-deps", p.pkg}}); err != nil {
		return t.failed(ctx, p, ErrNoModules, err)
	}
	return nil
}

// download downloads the module of a program and returns its go.mod.
func (t *toolchain) download(ctx context.Context, p program, dir string) (*modfile.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a temporary module: %w", err)
	}
	empty, err := EmptyModule(temporaryPath)
	if err != nil {
		return nil, err
	}
	if err := WriteGoMod(dir, empty); err != nil {
		return nil, err
	}
	t.job.report("fetching %s %s", p.module, p.version)
	out, err := t.run(ctx, goCall{
		dir: dir, doing: fmt.Sprintf("fetching %s %s", p.module, p.version),
		args: []string{"mod", "download", "-json", p.module + "@" + p.version},
	})
	var got struct{ GoMod, Error string }
	if parseErr := json.Unmarshal(out, &got); parseErr != nil && err == nil {
		err = fmt.Errorf("read the output of go mod download: %w", parseErr)
	}
	if err == nil && got.Error == "" {
		return ReadGoMod(got.GoMod)
	}
	if got.Error != "" && !errors.Is(err, ErrNoToolchain) {
		err = errors.New(got.Error)
	}
	if p.version == t.job.version.tag() && ctx.Err() == nil && t.unknown(ctx, p, dir) {
		return nil, fmt.Errorf("build %s %s: %w: the module proxy lists no such version; known to work: %s (%w)",
			p.name, p.version, ErrNoSuchVersion, strings.Join(testedVersions(), ", "), err)
	}
	return nil, t.failed(ctx, p, ErrNoModules, err)
}

// unknown reports whether the module proxy answers and does not list the version. It does not
// use the error of the download, whose text depends on the proxy.
func (t *toolchain) unknown(ctx context.Context, p program, dir string) bool {
	out, err := t.run(ctx, goCall{
		dir: dir, doing: "listing the versions",
		args: []string{"list", "-m", "-versions", "-f", "{{join .Versions \" \"}}", p.module},
	})
	known := strings.Fields(string(out))
	return err == nil && len(known) > 0 && !slices.Contains(known, p.version)
}

// failed returns the error of a build. Unless the context ended, it includes Advice.
func (t *toolchain) failed(ctx context.Context, p program, kind, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("build %s %s: %w", p.name, p.version, context.Cause(ctx))
	}
	if errors.Is(err, ErrNoToolchain) {
		kind = nil
	}
	if kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return fmt.Errorf("build %s %s: %w\n%s", p.name, p.version, err, Advice(string(t.job.version)))
}
