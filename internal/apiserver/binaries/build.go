package binaries

import (
	"bytes"
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
// Options.Dir, Options.NoBuild and KUBEBUILDER_ASSETS are ignored, and Options.ObservePlugins is
// set. The error is an ErrBadVersion, ErrNoToolchain, ErrNoModules, ErrNoSuchVersion, ErrBuild, or ErrDamaged if
// the built programs do not run.
func Build(ctx context.Context, o Options) (Assets, error) {
	o.ObservePlugins = true
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
		j.report("building the control plane %s%s from Go modules; the first time this takes about 6 minutes on 2 cores", j.version, j.covering())
		if err := t.build(ctx, to); err != nil {
			return err
		}
		j.report("built the control plane %s in %s", j.version, elapsed(started))
		return nil
	})
}

// build builds all programs. It downloads all modules before the first compilation, so that
// a missing one is found early.
func (t *toolchain) build(ctx context.Context, to dirs) error {
	programs := programsFor(t.job.version)
	counts := make([]int, len(programs))
	for i, p := range programs {
		source := filepath.Join(to.scratch, p.name)
		if err := os.Mkdir(source, 0o755); err != nil {
			return fmt.Errorf("make a temporary module: %w", err)
		}
		original, err := t.download(ctx, p, source)
		if err != nil {
			return err
		}
		if err := temporaryModule(source, p, original); err != nil {
			return err
		}
		if p.main {
			if err := writeMain(source); err != nil {
				return err
			}
		}
		if counts[i], err = t.resolve(ctx, p, source); err != nil {
			return err
		}
	}
	for i, p := range programs {
		if err := t.compile(ctx, p, to, counts[i]); err != nil {
			return err
		}
	}
	return nil
}

// compile builds one program, which has the given number of packages.
func (t *toolchain) compile(ctx context.Context, p program, to dirs, packages int) error {
	started := time.Now()
	args := []string{"build", "-v", "-trimpath", "-ldflags", strings.TrimSpace("-s -w " + p.flags), "-o", filepath.Join(to.out, p.name)}
	if p.main {
		args = append(args, t.job.coverFlags()...)
	}
	_, err := t.run(ctx, goCall{
		dir: filepath.Join(to.scratch, p.name), total: packages,
		doing: fmt.Sprintf("compiling %s %s", p.name, p.version), args: append(args, p.pkg),
	})
	if err != nil {
		return t.failed(ctx, p, ErrBuild, err)
	}
	t.job.report("compiled %s %s in %s", p.name, p.version, elapsed(started))
	return nil
}

// download downloads the module of a program and returns its go.mod.
func (t *toolchain) download(ctx context.Context, p program, dir string) (*modfile.File, error) {
	empty, err := EmptyModule(temporaryPath)
	if err != nil {
		return nil, err
	}
	if err := WriteModule(dir, empty); err != nil {
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
		return ReadModule(got.GoMod)
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

// resolve downloads all modules that a program needs and returns the number of its packages.
func (t *toolchain) resolve(ctx context.Context, p program, dir string) (int, error) {
	out, err := t.run(ctx, goCall{
		dir: dir, doing: fmt.Sprintf("fetching the modules of %s %s", p.name, p.version),
		args: []string{"list", "-deps", p.pkg},
	})
	if err != nil {
		return 0, t.failed(ctx, p, ErrNoModules, err)
	}
	return bytes.Count(out, []byte("\n")), nil
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
