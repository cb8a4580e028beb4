package binaries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Find returns the assets that are on this machine. It downloads and builds nothing.
//
// The error is an ErrBadVersion; an ErrNotFound if no folder has the version; an ErrDamaged or
// ErrWrongVersion if Options.Dir or KUBEBUILDER_ASSETS does not have the programs of the
// version; an ErrNoCache; an ErrUnsafe if another user could have written the copy in the
// cache; or an ErrDamaged if the only copy is a damaged one in the cache.
func Find(ctx context.Context, o Options) (Assets, error) {
	j, err := newJob(o)
	if err != nil {
		return Assets{}, err
	}
	found, damage, err := j.find(ctx)
	if errors.Is(err, ErrNotFound) && damage != nil {
		return Assets{}, fmt.Errorf("find control plane %s: %w; replace it with: admissiontest assets build --k8s-version %s",
			j.version, damage, j.version)
	}
	return found, err
}

// Ensure returns the assets that Find finds. If there are none, or only a damaged copy in the
// cache, it downloads them, and if that fails, or with Options.Plugins, it calls Build. It returns the errors of Find and Build, or an ErrBadIndex.
func Ensure(ctx context.Context, o Options) (Assets, error) {
	if len(o.Plugins) > 0 {
		return Build(ctx, o)
	}
	j, err := newJob(o)
	if err != nil {
		return Assets{}, err
	}
	index, err := j.indexURL()
	if err != nil {
		return Assets{}, err
	}
	found, _, missing := j.find(ctx)
	if !errors.Is(missing, ErrNotFound) {
		return found, missing
	}
	var failed error
	if index != nil {
		found, failed = j.download(ctx, index)
		if !errors.Is(failed, errNoDownload) {
			return found, failed
		}
	}
	if j.NoBuild {
		return Assets{}, errors.Join(failed, missing)
	}
	if j.ObservePlugins {
		j.report("building a kube-apiserver that records the calls of its admission plugins, because scenarios or options ask for them")
	}
	if failed != nil {
		j.report("%s; building it", strings.Join(strings.Fields(failed.Error()), " "))
	}
	return j.build(ctx)
}

// In returns the programs of a directory without running them. The version, and what else only the manifest of a
// cached control plane says, is empty for others. The error is an ErrDamaged if a program is missing.
func In(dir string) (Assets, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Assets{}, err
	}
	for _, name := range programs() {
		if err := executable(filepath.Join(dir, name)); err != nil {
			return Assets{}, fmt.Errorf("use %s: %w; put kube-apiserver and etcd there, or name another directory", dir, err)
		}
	}
	found := Assets{Dir: dir, Source: SourceDir}
	found.addManifest()
	return found, nil
}

// List returns all usable assets, in the order of the folders, and in each folder from the
// newest version to the oldest. If something is wrong with Options.Dir or
// KUBEBUILDER_ASSETS, it returns an error together with the assets of the other folders.
// Options.Version is ignored.
func List(ctx context.Context, o Options) ([]Assets, error) {
	o.Version = ""
	j, err := newJob(o)
	if err != nil {
		return nil, err
	}
	var all []Assets
	var wrong []error
	for _, given := range j.given() {
		found, err := j.inGiven(ctx, given)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		all = append(all, found)
	}
	for _, stored := range j.stores() {
		found, err := j.listStore(ctx, stored)
		all = append(all, found...)
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	return all, errors.Join(wrong...)
}

// folder is a directory to look in, and its Assets.Source.
type folder struct{ dir, source string }

// given returns the directories that Options.Dir and KUBEBUILDER_ASSETS name.
func (j *job) given() []folder {
	var folders []folder
	if j.Dir != "" {
		folders = append(folders, folder{j.Dir, SourceDir})
	}
	if dir := j.getenv("KUBEBUILDER_ASSETS"); dir != "" {
		folders = append(folders, folder{dir, SourceEnvironment})
	}
	return folders
}

// stores returns the directories that have one entry for each version; with ObservePlugins, only that of builds.
func (j *job) stores() []folder {
	var folders []folder
	if dir, err := setupEnvtestDir(runtime.GOOS, j.getenv); err == nil && !j.ObservePlugins {
		folders = append(folders, folder{filepath.Join(dir, "k8s"), SourceSetupEnvtest})
	}
	if j.noCache == nil {
		folders = append(folders, folder{j.cache, SourceCache})
	}
	if j.noCache == nil && !j.ObservePlugins {
		folders = append(folders, folder{j.downloads(), SourceCache})
	}
	return folders
}

// find looks in all folders. If it returns ErrNotFound, damage is the error of a damaged copy
// in the cache, or nil.
func (j *job) find(ctx context.Context) (found Assets, damage, err error) {
	if given := j.given(); len(given) > 0 {
		found, err = j.inGiven(ctx, given[0])
		return found, nil, err
	}
	if j.noCache != nil {
		return Assets{}, nil, j.noCache
	}
	for _, store := range j.stores() {
		found, err = j.inStore(ctx, store)
		switch {
		case err == nil:
			return found, nil, nil
		case errors.Is(err, ErrUnsafe) && store.source == SourceCache:
			return Assets{}, nil, fmt.Errorf("use the cached control plane %s: %w", j.version, err)
		case ctx.Err() != nil:
			return Assets{}, nil, fmt.Errorf("find control plane %s: %w", j.version, context.Cause(ctx))
		case errors.Is(err, ErrNotFound):
		case store.source == SourceCache:
			damage = err
			j.report("the cached control plane %s is not usable: %v", j.version, err)
		default:
			j.report("ignoring the control plane %s in the store of %s: %v", j.version, store.source, err)
		}
	}
	return Assets{}, damage, fmt.Errorf("find control plane %s in %s: %w; %s",
		j.version, j.cache, ErrNotFound, Advice(string(j.version)))
}

// inGiven returns the assets of a directory that the user named. Anything wrong with it is
// an error.
func (j *job) inGiven(ctx context.Context, given folder) (Assets, error) {
	dir, err := filepath.Abs(given.dir)
	if err != nil {
		return Assets{}, fmt.Errorf("use %s %s: %w", given.source, given.dir, err)
	}
	got, err := probe(ctx, dir)
	if err != nil {
		return Assets{}, fmt.Errorf("use %s %s: %w; put kube-apiserver and etcd there, or name another directory",
			given.source, dir, err)
	}
	right := j.Version == "" || j.version.matches(got) || j.anyPatch && semver.MajorMinor("v"+got) == semver.MajorMinor(j.version.tag())
	if !right {
		return Assets{}, fmt.Errorf("use %s %s: %w: got %s, want %s; choose version %s, or unset %s",
			given.source, dir, ErrWrongVersion, got, strings.TrimPrefix(j.Version, "v"), got, given.source)
	}
	found := Assets{Dir: dir, Version: got, Source: given.source}
	found.addManifest()
	return found, nil
}

// inStore returns the assets of the version in a store. The error is ErrNotFound, an ErrUnsafe
// or an ErrDamaged.
func (j *job) inStore(ctx context.Context, store folder) (Assets, error) {
	dir := filepath.Join(store.dir, j.entryName())
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return Assets{}, ErrNotFound
	}
	if err := safe(dir); err != nil {
		return Assets{}, err
	}
	if _, err := os.Lstat(filepath.Join(dir, manifestName)); store.source == SourceCache && errors.Is(err, os.ErrNotExist) {
		return Assets{}, fmt.Errorf("%w: %s has no manifest", ErrDamaged, dir)
	}
	found := Assets{Dir: dir, Version: string(j.version), Source: store.source}
	if err := check(ctx, dir, j.version); err != nil {
		return found, err
	}
	found.addManifest()
	return found, nil
}

// listStore returns all usable versions of a store, from the newest to the oldest.
func (j *job) listStore(ctx context.Context, store folder) ([]Assets, error) {
	entries, err := os.ReadDir(store.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list control planes in %s: %w", store.dir, err)
	}
	var found []Assets
	for _, entry := range entries {
		v, ok := versionOfDirName(entry.Name())
		if !ok {
			continue
		}
		one := *j
		one.version = v
		a, err := one.inStore(ctx, store)
		if err != nil {
			j.report("ignoring the control plane %s (%s): %v", v, store.source, err)
			continue
		}
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b Assets) int {
		return cmp.Or(-semver.Compare("v"+a.Version, "v"+b.Version), cmp.Compare(a.Dir, b.Dir))
	})
	return found, context.Cause(ctx)
}
