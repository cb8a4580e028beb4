package assets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/mod/semver"
)

// Find returns the assets that are on this machine, without making any.
//
// It fails with ErrNotFound when no place has the version; with ErrDamaged or
// ErrWrongVersion when Options.Dir or KUBEBUILDER_ASSETS do not hold what they
// should, and with ErrDamaged when only a damaged copy in our cache was found.
func Find(ctx context.Context, o Options) (Assets, error) {
	j, err := newJob(o)
	if err != nil {
		return Assets{}, err
	}
	found, damage, err := j.find(ctx)
	if errors.Is(err, ErrNotFound) && damage != nil {
		return Assets{}, fmt.Errorf("find control plane %s: %w; make it again with: admissiontest assets build --k8s-version %s",
			j.version, damage, j.version)
	}
	return found, err
}

// Ensure returns what Find finds, and where that is nothing, or only a damaged
// copy in our cache, what Build builds. With Options.NoBuild it is Find.
func Ensure(ctx context.Context, o Options) (Assets, error) {
	if o.NoBuild {
		return Find(ctx, o)
	}
	j, err := newJob(o)
	if err != nil {
		return Assets{}, err
	}
	found, _, err := j.find(ctx)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	return j.build(ctx)
}

// List returns every usable version found, by place in the order of look-up and
// newest first within one. What is wrong with Options.Dir or KUBEBUILDER_ASSETS
// is an error, returned together with what the other places hold; Options.Version
// is not heeded.
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

// place is a directory to look in, and what Assets.Source calls it.
type place struct{ dir, source string }

// given lists the directories somebody named.
func (j *job) given() []place {
	var places []place
	if j.Dir != "" {
		places = append(places, place{j.Dir, SourceDir})
	}
	if dir := j.getenv("KUBEBUILDER_ASSETS"); dir != "" {
		places = append(places, place{dir, SourceEnvironment})
	}
	return places
}

// stores lists the directories with one entry for each version.
func (j *job) stores() []place {
	places := []place{{j.cache, SourceCache}}
	if dir, err := setupEnvtestDir(runtime.GOOS, j.getenv); err == nil {
		places = append(places, place{filepath.Join(dir, "k8s"), SourceSetupEnvtest})
	}
	return places
}

// find looks in every place. When it returns ErrNotFound, damage says what was
// wrong with the copy in our cache, if there was one.
func (j *job) find(ctx context.Context) (found Assets, damage, err error) {
	if given := j.given(); len(given) > 0 {
		found, err = j.inGiven(ctx, given[0])
		return found, nil, err
	}
	for _, store := range j.stores() {
		found, err = j.inStore(ctx, store)
		switch {
		case err == nil:
			return found, nil, nil
		case ctx.Err() != nil:
			return Assets{}, nil, fmt.Errorf("find control plane %s: %w", j.version, context.Cause(ctx))
		case errors.Is(err, ErrNotFound):
		case store.source == SourceCache:
			damage = err
			j.tell("the cached control plane %s is not usable: %v", j.version, err)
		default:
			j.tell("passing over the control plane %s in the store of %s: %v", j.version, store.source, err)
		}
	}
	return Assets{}, damage, fmt.Errorf("find control plane %s in %s: %w; %s",
		j.version, j.cache, ErrNotFound, Advice(string(j.version)))
}

// inGiven takes a directory at its owner's word: anything amiss is an error.
func (j *job) inGiven(ctx context.Context, given place) (Assets, error) {
	dir, err := filepath.Abs(given.dir)
	if err != nil {
		return Assets{}, fmt.Errorf("use %s %s: %w", given.source, given.dir, err)
	}
	got, err := probe(ctx, dir)
	if err != nil {
		return Assets{}, fmt.Errorf("use %s %s: %w; put kube-apiserver and etcd there, or name another directory",
			given.source, dir, err)
	}
	if j.Version != "" && !j.version.matches(got) {
		return Assets{}, fmt.Errorf("use %s %s: %w: it holds %s, asked for was %s; ask for %s, or leave %s unset",
			given.source, dir, ErrWrongVersion, got, j.version, got, given.source)
	}
	return Assets{Dir: dir, Version: got, Source: given.source}, nil
}

// inStore looks for the version in a directory of versions.
func (j *job) inStore(ctx context.Context, store place) (Assets, error) {
	dir := filepath.Join(store.dir, j.version.dirName())
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return Assets{}, ErrNotFound
	}
	return Assets{Dir: dir, Version: string(j.version), Source: store.source}, check(ctx, dir, j.version)
}

// listStore returns every usable version of a store, newest first.
func (j *job) listStore(ctx context.Context, store place) ([]Assets, error) {
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
			j.tell("passing over the control plane %s (%s): %v", v, store.source, err)
			continue
		}
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b Assets) int {
		return cmp.Or(-semver.Compare("v"+a.Version, "v"+b.Version), cmp.Compare(a.Dir, b.Dir))
	})
	return found, context.Cause(ctx)
}
