package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a waiting maker asks for the lock.
const lockPoll = 100 * time.Millisecond

// Maker makes the programs of one version and puts them into out, a directory
// that exists and is empty. It may keep whatever else it needs in scratch. Both
// are on the cache's file system and gone once it returns; tell passes a line
// of progress on.
type Maker func(ctx context.Context, dirs MakerDirs, tell func(format string, args ...any)) error

// MakerDirs are the directories a Maker works in.
type MakerDirs struct {
	Out     string // kube-apiserver and etcd go here, executable
	Scratch string // anything else
}

// Install puts the version asked for into our cache: with the lock held, unless
// it is there and whole already, it runs the maker, checks what came out, and
// moves it into place. Source is what the assets' Source will say if they were
// made by this call; when another maker was faster, it is SourceCache.
//
// Options.Dir, Options.NoBuild and KUBEBUILDER_ASSETS are not heeded. The errors
// are the maker's, ErrDamaged when what it made does not run or is of another
// version, and those of the file system.
func Install(ctx context.Context, o Options, source string, maker Maker) (Assets, error) {
	j, err := newJob(o)
	if err != nil {
		return Assets{}, err
	}
	return j.install(ctx, source, maker)
}

func (j *job) install(ctx context.Context, source string, maker Maker) (made Assets, err error) {
	if err := os.MkdirAll(j.cache, 0o755); err != nil {
		return Assets{}, fmt.Errorf("make the cache %s: %w; name another directory as the cache", j.cache, err)
	}
	unlock, err := j.lock(ctx)
	if err != nil {
		return Assets{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	cached, err := j.inStore(ctx, place{j.cache, SourceCache})
	switch {
	case err == nil:
		return cached, nil
	case ctx.Err() != nil:
		return Assets{}, fmt.Errorf("install control plane %s: %w", j.version, context.Cause(ctx))
	case errors.Is(err, ErrDamaged):
		j.tell("replacing the cached control plane %s: %v", j.version, err)
	case !errors.Is(err, ErrNotFound):
		return Assets{}, err
	}
	j.removeStale()
	if err := j.makeInto(ctx, source, maker); err != nil {
		return Assets{}, err
	}
	return Assets{Dir: j.destination(), Version: string(j.version), Source: source}, nil
}

// makeInto runs the maker in a directory beside the destination and moves what
// it made into place. The caller holds the lock.
func (j *job) makeInto(ctx context.Context, source string, maker Maker) (err error) {
	stage, err := os.MkdirTemp(j.cache, j.stagePrefix()+"*")
	if err != nil {
		return fmt.Errorf("make a directory in the cache: %w", err)
	}
	defer func() { err = errors.Join(err, removeBusy(stage)) }()
	dirs := MakerDirs{Out: filepath.Join(stage, "out"), Scratch: filepath.Join(stage, "scratch")}
	for _, dir := range []string{dirs.Out, dirs.Scratch} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("make a directory in the cache: %w", err)
		}
	}
	if err := maker(ctx, dirs, j.tell); err != nil {
		return err
	}
	got, err := probe(ctx, dirs.Out)
	if err != nil {
		return fmt.Errorf("check the new control plane %s: %w", j.version, err)
	}
	if !j.version.matches(got) {
		return fmt.Errorf("check the new control plane %s: %w: kube-apiserver calls itself %s", j.version, ErrDamaged, got)
	}
	if err := seal(dirs.Out, j.version, source); err != nil {
		return err
	}
	return j.moveIn(dirs.Out, filepath.Join(stage, "replaced"))
}

// moveIn renames the new directory into place; what was there goes to aside.
func (j *job) moveIn(made, aside string) error {
	if err := os.Rename(j.destination(), aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", j.destination(), err)
	}
	if err := os.Rename(made, j.destination()); err != nil {
		return fmt.Errorf("install %s: %w", j.destination(), err)
	}
	return nil
}

// lock takes the version's lock, waiting for whoever has it.
func (j *job) lock(ctx context.Context) (unlock func() error, err error) {
	path := filepath.Join(j.cache, "."+j.version.dirName()+".lock")
	l := flock.New(path)
	held, err := l.TryLock()
	if err == nil && !held {
		started := time.Now()
		j.tell("waiting for another process that is making the control plane %s (lock %s)", j.version, path)
		stop := j.every(func() {
			j.tell("still waiting for the other maker of the control plane %s: %s", j.version, elapsed(started))
		})
		held, err = l.TryLockContext(ctx, lockPoll)
		stop()
	}
	if err != nil || !held {
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, l.Close()))
	}
	return l.Close, nil
}

// stagePrefix begins the name of every directory the version is made in.
func (j *job) stagePrefix() string { return ".making-" + j.version.dirName() + "-" }

// removeStale removes what killed makers of this version left. With the lock
// held, no living maker owns any of it.
func (j *job) removeStale() {
	entries, err := filepath.Glob(filepath.Join(globQuote(j.cache), j.stagePrefix()+"*"))
	if err != nil {
		return // only a malformed pattern, and the quoting rules that out
	}
	for _, dir := range entries {
		j.tell("removing what a killed maker left: %s", dir)
		if err := removeBusy(dir); err != nil {
			j.tell("it stays for now: %v", err)
		}
	}
}

// every calls do at each heartbeat until the returned function was called.
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

// elapsed is the time since, as a person says it: "1m20s".
func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }

// removeBusy removes a directory in which processes that are being killed may
// still write for a moment.
func removeBusy(dir string) error {
	err := os.RemoveAll(dir)
	for tries := 0; err != nil && tries < 40; tries++ {
		<-time.After(50 * time.Millisecond)
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// globQuote makes a path match only itself as a pattern.
func globQuote(path string) string {
	var quoted []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, path[i])
	}
	return string(quoted)
}
