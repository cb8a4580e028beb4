package binaries

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

const (
	// keptTime is how long a server with plugins stays in the cache at least: another process may be about to start it.
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
	key, err := t.digest(packages)
	if err != nil {
		return Assets{}, err
	}
	own := *j
	own.cache, own.entry = filepath.Join(j.cacheRoot(), "plugins"), j.version.dirName()+"-"+key
	found, err := own.inStore(ctx, folder{own.cache, SourceCache})
	if err == nil {
		return found, nil
	}
	if j.NoBuild {
		return Assets{}, fmt.Errorf("find kube-apiserver %s with %s: %w; without --no-build it is built", j.version, names(packages), ErrNotFound)
	}
	own.removeOld()
	return own.install(ctx, func(ctx context.Context, to dirs) error { return own.makeServer(ctx, j, packages, to) })
}

// makeServer builds a kube-apiserver with plugins, and copies etcd or builds it.
func (j *job) makeServer(ctx context.Context, plain *job, packages []pluginPackage, to dirs) error {
	t, err := newToolchain(j, to.scratch)
	if err != nil {
		return err
	}
	started := time.Now()
	j.report("building kube-apiserver %s with %s", j.version, names(packages))
	if err := t.buildServer(ctx, programsFor(j.version)[0], packages, to); err != nil {
		return err
	}
	if err := addEtcd(ctx, plain, to); err != nil {
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
	args := slices.Concat([]string{"build", "-overlay", overlaid}, p.arguments(), []string{"-o", filepath.Join(to.out, p.name)})
	if t.job.covers() {
		covered := []string{temporaryPath} // without the main package, Go writes nothing
		for _, one := range packages {
			covered = append(covered, one.path)
		}
		args = append(args, "-cover", "-coverpkg="+strings.Join(covered, ","))
	}
	_, err = t.run(ctx, goCall{dir: source, doing: fmt.Sprintf("compiling %s %s with plugins", p.name, p.version), args: append(args, ".")})
	if err != nil {
		return t.badPlugin(ctx, fmt.Errorf("build %s %s with %s: %w%s", p.name, p.version, names(packages), err, otherVersions(p, packages)))
	}
	return nil
}

// otherVersions says which packages have another version of k8s.io/apiserver in their go.mod than a kube-apiserver: their code
// may not compile with it.
func otherVersions(p program, packages []pluginPackage) (text string) {
	for _, one := range packages {
		for _, m := range one.modules() {
			if minor, known := strings.CutPrefix(m.Version, "v0."); known && m.Path == "k8s.io/apiserver" && m.Version != p.staging {
				text += fmt.Sprintf("\nthe go.mod of %s has k8s.io/apiserver %s, and this one is built with %s: for its own version, use --k8s-version 1.%s", one.path, m.Version, p.staging, minor)
			}
		}
	}
	return text
}

// covers reports whether the plugins are built with coverage: if the server would write it
// somewhere.
func (j *job) covers() bool { return j.getenv("GOCOVERDIR") != "" }

// addEtcd copies the etcd of the plain control plane, which it builds if there is none.
func addEtcd(ctx context.Context, plain *job, to dirs) error {
	without := *plain
	// Any version in the directory that the user names, and any etcd: also one that was downloaded.
	without.Plugins, without.Version, without.ObservePlugins = nil, "", false
	found, _, err := without.find(ctx)
	if err != nil {
		found, err = without.build(ctx)
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(found.Etcd())
	if err == nil {
		err = os.WriteFile(filepath.Join(to.out, etcdName), text, 0o755) //nolint:gosec // it is a program
	}
	if err != nil {
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
		return nil, fmt.Errorf("%w: %s", ErrBadPlugin, strings.TrimSpace(cmp.Or(errs.String(), err.Error())))
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

// removeOld removes the servers with plugins that were built long ago.
func (j *job) removeOld() {
	manifests, _ := filepath.Glob(filepath.Join(j.cache, "*", manifestName)) // the pattern is right
	for _, path := range manifests {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > keptTime {
			_ = os.RemoveAll(filepath.Dir(path)) // it stays until the next time
		}
	}
}
