package binaries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is the time between two attempts to get the lock.
const lockPoll = 100 * time.Millisecond

// dirs are the directories in which the programs of one version are made. Both are empty at first, on the file
// system of the cache, and are removed afterwards.
type dirs struct {
	out     string // for kube-apiserver and etcd, which must be executable
	scratch string // for temporary files
}

// install installs a version in the cache, unless the cache has it. It takes the lock of the version, calls build,
// checks the programs and moves them into place.
func (j *job) install(ctx context.Context, build func(context.Context, dirs) error) (made Assets, err error) {
	if j.noCache != nil {
		return Assets{}, j.noCache
	}
	if err := os.MkdirAll(j.cache, 0o755); err != nil {
		return Assets{}, cacheError("make the cache "+j.cache, err)
	}
	if err := safe(j.cache); err != nil {
		return Assets{}, fmt.Errorf("use the cache %s: %w", j.cache, err)
	}
	unlock, err := j.lock(ctx)
	if err != nil {
		return Assets{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	cached, err := j.inStore(ctx, folder{j.cache, SourceCache})
	switch {
	case err == nil:
		return cached, nil
	case ctx.Err() != nil:
		return Assets{}, fmt.Errorf("install control plane %s: %w", j.version, context.Cause(ctx))
	case errors.Is(err, ErrDamaged):
		j.report("replacing the cached control plane %s: %v", j.version, err)
	case !errors.Is(err, ErrNotFound):
		return Assets{}, fmt.Errorf("use the cached control plane %s: %w", j.version, err)
	}
	j.removeStale()
	if err := j.makeInto(ctx, build); err != nil {
		return Assets{}, err
	}
	return j.inStore(ctx, folder{j.cache, cmp.Or(j.source, SourceBuilt)})
}

// cacheError returns the error of an action in the cache, with what to do.
func cacheError(doing string, err error) error {
	return fmt.Errorf("%s: %w; choose another directory as the cache (XDG_CACHE_HOME), or use existing binaries (--assets-dir)", doing, err)
}

// makeInto calls build for a directory beside the destination and moves the programs into
// place. The caller holds the lock.
func (j *job) makeInto(ctx context.Context, build func(context.Context, dirs) error) error {
	stage, err := os.MkdirTemp(j.cache, j.stagePrefix()+"*")
	if err != nil {
		return cacheError("make a directory in the cache", err)
	}
	defer func() { _ = os.RemoveAll(stage) }() // what a process that is being killed writes into it stays until the next build
	to := dirs{out: filepath.Join(stage, "out"), scratch: filepath.Join(stage, "scratch")}
	for _, dir := range []string{to.out, to.scratch} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("make a directory in the cache: %w", err)
		}
	}
	if err := build(ctx, to); err != nil {
		return err
	}
	got, err := probe(ctx, to.out)
	if err != nil {
		return fmt.Errorf("check the new control plane %s: %w", j.version, err)
	}
	if !j.version.matches(got) {
		return fmt.Errorf("check the new control plane %s: %w: kube-apiserver --version printed %s", j.version, ErrDamaged, got)
	}
	if err := seal(to.out, manifest{Version: string(j.version), Archive: j.archive, Plugins: j.pluginNames}); err != nil {
		return err
	}
	return j.moveIn(to.out, filepath.Join(stage, "replaced"))
}

// moveIn renames the new directory to the destination, and the old one to aside.
func (j *job) moveIn(made, aside string) error {
	if err := os.Rename(j.destination(), aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", j.destination(), err)
	}
	if err := os.Rename(made, j.destination()); err != nil {
		return fmt.Errorf("install %s: %w", j.destination(), err)
	}
	return nil
}

// lock takes the lock of the version, and waits if another process or goroutine has it.
func (j *job) lock(ctx context.Context) (unlock func() error, err error) {
	path := filepath.Join(j.cache, "."+j.entryName()+".lock")
	l := flock.New(path)
	held, err := l.TryLock()
	if err != nil {
		return nil, cacheError("lock "+path, errors.Join(err, l.Close()))
	}
	if !held {
		started := time.Now()
		j.report("waiting for another process that makes the control plane %s (lock %s)", j.version, path)
		stop := j.every(func() {
			j.report("still waiting for the other process that makes the control plane %s: %s", j.version, elapsed(started))
		})
		held, err = l.TryLockContext(ctx, lockPoll)
		stop()
	}
	if err != nil || !held {
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, l.Close()))
	}
	return l.Close, nil
}

// stagePrefix is the prefix of the directories in which the version is made.
func (j *job) stagePrefix() string { return ".making-" + j.entryName() + "-" }

// removeStale removes the directories that killed processes left. The caller holds the lock,
// so no running process uses them.
func (j *job) removeStale() {
	entries, _ := os.ReadDir(j.cache) // a cache that cannot be read has no such directory
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), j.stagePrefix()) {
			_ = os.RemoveAll(filepath.Join(j.cache, entry.Name())) // it stays until the next time
		}
	}
}

// every calls do at each heartbeat until stop is called.
func (j *job) every(do func()) (stop func()) {
	ticker := time.NewTicker(j.heartbeat)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				do()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
		<-ended
	}
}

// elapsed returns the time since a moment, rounded to seconds: "1m20s".
func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }
