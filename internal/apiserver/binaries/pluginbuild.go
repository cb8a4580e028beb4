package binaries

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

const (
	// keptServers is the number of servers with plugins that stay in the cache.
	keptServers = 6
	// keptTime is how long a server with plugins stays in the cache in any case: another process
	// may be about to start it.
	keptTime = time.Hour
	// describeVariable makes a kube-apiserver that this package built print its plugins and end.
	describeVariable = "ADMISSIONTEST_DESCRIBE_PLUGINS"
)

// withPlugins returns the assets with a kube-apiserver that has the plugins: from the cache, or
// built. The cache has an entry for each content of the plugins.
func (j *job) withPlugins(ctx context.Context) (Assets, error) {
	if j.noCache != nil {
		return Assets{}, j.noCache
	}
	if err := os.MkdirAll(j.cacheRoot(), 0o755); err != nil {
		return Assets{}, fmt.Errorf("make the cache: %w", err)
	}
	scratch, err := userfile.MkdirTemp("admissiontest-")
	if err != nil {
		return Assets{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // it has no files unless `go` was killed
	t, err := newToolchain(j, scratch)
	if err != nil {
		return Assets{}, err
	}
	packages, err := t.list(ctx, j.Plugins)
	if err != nil {
		return Assets{}, err
	}
	key, err := t.digest(ctx, packages)
	if err != nil {
		return Assets{}, err
	}
	own := *j
	own.cache, own.entry = filepath.Join(j.cacheRoot(), "plugins"), j.version.dirName()+"-"+key
	if found, err := own.cachedServer(ctx); err == nil || j.NoBuild {
		return found, err
	}
	own.removeOld()
	made, err := own.install(ctx, func(ctx context.Context, to dirs) error {
		return own.makeServer(ctx, j, packages, to)
	})
	if err != nil {
		return Assets{}, err
	}
	return own.describe(made)
}

// cachedServer returns the server with plugins in the cache. The error is an ErrNotFound, an
// ErrDamaged or an ErrUnsafe.
func (j *job) cachedServer(ctx context.Context) (Assets, error) {
	found, err := j.inStore(ctx, folder{j.cache, SourceCache})
	if err != nil {
		return Assets{}, fmt.Errorf("find control plane %s with plugins: %w", j.version, err)
	}
	return j.describe(found)
}

// describe adds the names of the plugins to assets.
func (j *job) describe(found Assets) (Assets, error) {
	m, err := readManifest(found.Dir)
	if err != nil {
		return Assets{}, err
	}
	found.Plugins = m.Plugins
	return found, nil
}

// makeServer builds a kube-apiserver with plugins, and copies etcd or builds it.
func (j *job) makeServer(ctx context.Context, plain *job, packages []pluginPackage, to dirs) error {
	t, err := newToolchain(j, to.scratch)
	if err != nil {
		return err
	}
	started := time.Now()
	j.report("building kube-apiserver %s with %s", j.version, names(packages))
	programs := programsFor(j.version)
	if err := t.buildServer(ctx, programs[0], packages, to); err != nil {
		return err
	}
	if err := j.addEtcd(ctx, t, plain, programs[1], to); err != nil {
		return err
	}
	j.pluginNames, err = described(ctx, filepath.Join(to.out, apiserverName))
	if err == nil {
		j.report("built kube-apiserver %s with %s in %s", j.version, strings.Join(j.pluginNames, ", "), elapsed(started))
	}
	return err
}

func names(packages []pluginPackage) string {
	var all []string
	for _, p := range packages {
		all = append(all, p.path)
	}
	return strings.Join(all, ", ")
}

// buildServer compiles kube-apiserver with the packages.
func (t *toolchain) buildServer(ctx context.Context, p program, packages []pluginPackage, to dirs) error {
	source := filepath.Join(to.scratch, p.name)
	if err := os.Mkdir(source, 0o755); err != nil {
		return fmt.Errorf("make a temporary module: %w", err)
	}
	original, err := t.download(ctx, p, source)
	if err != nil {
		return err
	}
	if err := pluginModule(source, p, original, packages); err != nil {
		return err
	}
	if err := writeMain(source); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(source, "plugins.go"), []byte(generate(packages)), 0o644); err != nil {
		return fmt.Errorf("write the main package: %w", err)
	}
	overlaid, err := overlay(source, packages)
	if err != nil {
		return err
	}
	args := []string{"build", "-v", "-trimpath", "-overlay", overlaid, "-ldflags", strings.TrimSpace("-s -w " + p.flags), "-o", filepath.Join(to.out, p.name)}
	if t.job.covers() {
		covered := []string{temporaryPath} // without the main package, Go writes nothing
		for _, one := range packages {
			covered = append(covered, one.path)
		}
		args = append(args, "-cover", "-coverpkg="+strings.Join(covered, ","))
	}
	_, err = t.run(ctx, goCall{dir: source, doing: fmt.Sprintf("compiling %s %s with plugins", p.name, p.version), args: append(args, ".")})
	if err != nil {
		return t.badPlugin(ctx, fmt.Errorf("build %s %s with %s: %w", p.name, p.version, names(packages), err))
	}
	return nil
}

// covers reports whether the plugins are built with coverage: if the server would write it
// somewhere.
func (j *job) covers() bool { return j.getenv("GOCOVERDIR") != "" }

// addEtcd copies the etcd of the plain control plane, or builds one if there is none.
func (j *job) addEtcd(ctx context.Context, t *toolchain, plain *job, p program, to dirs) error {
	silent := *plain
	silent.Progress, silent.Plugins = nil, nil
	if found, _, err := silent.find(ctx); err == nil {
		return copyFile(found.Etcd(), filepath.Join(to.out, etcdName))
	}
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
	return t.compile(ctx, p, to, 0)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy etcd: %w", err)
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return fmt.Errorf("copy etcd: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy etcd: %w", err)
	}
	return nil
}

// described returns the names of the plugins in a kube-apiserver that this package built. The error is an
// ErrBadPlugin if they cannot be added to its own.
func described(ctx context.Context, path string) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, path)
	cmd.Env = append(os.Environ(), describeVariable+"=1", "GOCOVERDIR=")
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run %s: %w", path, context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrBadPlugin, strings.TrimSpace(cmp.Or(withoutDump(errs.String()), err.Error())))
	}
	var byPackage map[string][]string
	if err := json.Unmarshal(out, &byPackage); err != nil {
		return nil, fmt.Errorf("%w: the new kube-apiserver does not print its plugins: %w", ErrDamaged, err)
	}
	var all []string
	for _, path := range slices.Sorted(maps.Keys(byPackage)) {
		all = append(all, byPackage[path]...)
	}
	return all, nil
}

// dump matches what Go prints about a panic up to the innermost function: the value, the function, and file
// and line.
var dump = regexp.MustCompile(`(?s)^panic: (.*?)\n\ngoroutine [^\n]*\n(?:panic\([^\n]*\n[^\n]*\n)*([^\n]+)\([^\n]*\)\n\t[^\n]*?([^/\n]+:\d+)`)

// withoutDump returns what a program printed. If that is a panic, which is one of an init function here, it is one
// line with function, file and line.
func withoutDump(printed string) string {
	if found := dump.FindStringSubmatch(printed); found != nil {
		return fmt.Sprintf("the initialization of a package panicked at %s (%s): %s", found[2], found[3], found[1])
	}
	return printed
}

// removeOld removes the servers with plugins that were built long ago, except some.
func (j *job) removeOld() {
	entries, err := filepath.Glob(filepath.Join(globQuote(j.cache), "*", manifestName))
	if err != nil {
		return // the only error is a malformed pattern
	}
	type entry struct {
		dir  string
		made time.Time
	}
	var all []entry
	for _, path := range entries {
		if info, err := os.Stat(path); err == nil {
			all = append(all, entry{filepath.Dir(path), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return b.made.Compare(a.made) })
	for _, old := range all[min(len(all), keptServers-1):] {
		if time.Since(old.made) > keptTime {
			_ = removeBusy(old.dir) // it stays until the next time
		}
	}
}
