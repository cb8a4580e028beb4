// Package filewatch waits for changes of files, as editors, compilers and git make them: by writing, by
// renaming another file to the name, or by removing a folder and making it again.
package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A burst of changes ends after a quiet time. It is longer if the burst began while the last one was
// dealt with, or soon after: then many files are being saved.
const (
	firstQuiet = 50 * time.Millisecond
	laterQuiet = 300 * time.Millisecond
	soon       = time.Second
)

// longest limits a burst.
const longest = 3 * time.Second

// Watcher waits for changes of files. Its methods must not be called by several goroutines at the same
// time.
type Watcher struct {
	system *fsnotify.Watcher
	ended  chan struct{}
	// last is when Next returned the last time.
	last time.Time

	mu      sync.Mutex
	set     Set
	changed map[string]bool
	// noted receives a value when a change is added to changed.
	noted chan struct{}
}

// Set is the files to watch. A file or folder need not exist.
type Set struct {
	// Files are files, by absolute path.
	Files []string
	// Folders are folders with the files below them, except those whose names begin with a dot.
	Folders []Folder
	// Except are folders in Folders that are not watched, by absolute path.
	Except []string
}

// Folder is a folder to watch.
type Folder struct {
	// Path is its absolute path.
	Path string
	// Extensions are the extensions of the files to watch: ".yaml".
	Extensions []string
}

// New returns a Watcher that watches nothing.
func New() (*Watcher, error) {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := newWatcher()
	w.system = system
	go w.receive()
	return w, nil
}

func newWatcher() *Watcher {
	return &Watcher{changed: map[string]bool{}, noted: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Close ends the Watcher.
func (w *Watcher) Close() error {
	err := w.system.Close()
	<-w.ended
	return err
}

// receive notes changes until Close.
func (w *Watcher) receive() {
	defer close(w.ended)
	for {
		select {
		case event, open := <-w.system.Events:
			if !open {
				return
			}
			if event.Op != fsnotify.Chmod {
				w.note(event.Name)
			}
		case err, open := <-w.system.Errors:
			if !open {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) { // anything can have changed
				w.mu.Lock()
				all := w.set.Files
				w.mu.Unlock()
				w.note(all...)
			}
		}
	}
}

// note adds those paths to the changes that are in the Set.
func (w *Watcher) note(paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range paths {
		if w.set.has(path) {
			w.changed[path] = true
			select {
			case w.noted <- struct{}{}:
			default:
			}
		}
	}
}

// has reports whether a changed file or folder belongs to the Set. A folder above a file does, because
// the file appears and vanishes with it.
func (s Set) has(path string) bool {
	if slices.ContainsFunc(s.Files, func(file string) bool { return below(path, file) }) {
		return true
	}
	if slices.ContainsFunc(s.Except, func(except string) bool { return below(except, path) }) {
		return false
	}
	return slices.ContainsFunc(s.Folders, func(f Folder) bool {
		return below(path, f.Path) || below(f.Path, path) && !hidden(f.Path, path) && f.has(path)
	})
}

// has reports whether the extension of a changed file is wanted. A folder always counts, and what can
// have been one.
func (f Folder) has(path string) bool {
	if slices.Contains(f.Extensions, filepath.Ext(path)) {
		return true
	}
	info, err := os.Stat(path)
	return err != nil && filepath.Ext(path) == "" || err == nil && info.IsDir()
}

// below reports whether a path is a folder or below it.
func below(folder, path string) bool {
	within, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(within)
}

// hidden reports whether a file below a folder is hidden.
func hidden(folder, path string) bool {
	within, err := filepath.Rel(folder, path)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(strings.Split(within, string(filepath.Separator)), func(name string) bool {
		return name != "." && strings.HasPrefix(name, ".")
	})
}

// Watch watches a Set instead of the last one. It returns an error if the system cannot watch.
func (w *Watcher) Watch(set Set) error {
	set = set.resolved()
	w.mu.Lock()
	w.set = set
	w.mu.Unlock()
	wanted := set.folders()
	for _, path := range w.system.WatchList() {
		if !wanted[path] {
			_ = w.system.Remove(path) // it can be gone
		}
	}
	for path := range wanted {
		if err := w.system.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("watch folder %s: %w", path, err)
		}
	}
	return nil
}

// resolved returns a Set that also has the targets of symbolic links: editors can write to them.
func (s Set) resolved() Set {
	s.Files, s.Folders = slices.Clone(s.Files), slices.Clone(s.Folders)
	for _, path := range s.Files {
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			s.Files = append(s.Files, target)
		}
	}
	for _, folder := range s.Folders {
		if target, err := filepath.EvalSymlinks(folder.Path); err == nil && target != folder.Path {
			s.Folders = append(s.Folders, Folder{target, folder.Extensions})
		}
	}
	return s
}

// folders returns the folders that the system must watch.
func (s Set) folders() map[string]bool {
	wanted := map[string]bool{}
	for _, file := range s.Files {
		wanted[existing(filepath.Dir(file))] = true
	}
	for _, folder := range s.Folders {
		wanted[existing(filepath.Dir(folder.Path))] = true
		_ = filepath.WalkDir(folder.Path, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || !entry.IsDir():
				return nil //nolint:nilerr // what cannot be read cannot be watched
			case hidden(folder.Path, path):
				return fs.SkipDir
			}
			wanted[path] = true
			return nil
		})
	}
	return wanted
}

// existing returns the folder, or the nearest one above it that exists.
func existing(folder string) string {
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder
		}
		above := filepath.Dir(folder)
		if above == folder {
			return folder
		}
		folder = above
	}
}

// Next waits for a burst of changes and returns the changed files and folders, sorted. Changes since the
// last call count. The error is the cause of ctx.
func (w *Watcher) Next(ctx context.Context) ([]string, error) {
	select {
	case <-w.noted:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	quiet := firstQuiet
	if !w.last.IsZero() && time.Since(w.last) < soon {
		quiet = laterQuiet
	}
	limit, timer := time.NewTimer(longest), time.NewTimer(quiet)
	defer limit.Stop()
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case <-w.noted:
			timer.Reset(quiet)
		case <-timer.C:
			waiting = false
		case <-limit.C:
			waiting = false
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	w.last = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.noted: // it is in changed
	default:
	}
	changed := slices.Sorted(maps.Keys(w.changed))
	clear(w.changed)
	return changed, nil
}
