package cli

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lookPause is the time between two looks at the watched files.
const lookPause = 100 * time.Millisecond

// A burst of changes ends after a quiet time. It is longer if the burst began while the last one was
// dealt with, or soon after: then many files are being saved. Longest limits a burst.
const (
	firstQuiet = 50 * time.Millisecond
	laterQuiet = 300 * time.Millisecond
	soon       = time.Second
	longest    = 3 * time.Second
)

// watchedFiles notices changes of files, as editors, compilers and git make them: by writing, by renaming another
// file to the name, or by removing a folder and making it again. It looks at them again and again, which needs
// nothing of the system and works on each file system.
type watchedFiles struct {
	set     fileSet
	seen    map[string]fs.FileInfo
	changed map[string]bool
	// last is when next returned the last time.
	last time.Time
}

// fileSet is the files to watch. A file or folder need not exist.
type fileSet struct {
	// files are files, by absolute path.
	files []string
	// folders are folders with the files below them, except those whose names begin with a dot.
	folders []watchedFolder
	// except are folders in folders that are not watched, by absolute path.
	except []string
}

// watchedFolder is a folder, by absolute path, in which the files with these extensions (".yaml") are watched.
type watchedFolder struct {
	path       string
	extensions []string
}

// watch watches a set instead of the last one, and reports whether a file of both has changed since the last call.
func (w *watchedFiles) watch(set fileSet) bool {
	before, old := w.seen, w.set
	w.set, w.seen = set, set.look()
	var changed []string
	for path, now := range w.seen {
		was, known := before[path]
		if known && !sameFile(was, now) || !known && old.has(path) {
			changed = append(changed, path)
		}
	}
	for path := range before {
		if w.seen[path] == nil && set.has(path) {
			changed = append(changed, path)
		}
	}
	if w.changed == nil {
		w.changed = map[string]bool{}
	}
	for _, path := range changed {
		w.changed[path] = true
	}
	return len(changed) > 0
}

// sameFile reports whether a file has not changed between two looks.
func sameFile(before, after fs.FileInfo) bool {
	return os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
}

// look returns the files of the set that exist, by absolute path.
func (s fileSet) look() map[string]fs.FileInfo {
	found := map[string]fs.FileInfo{}
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			found[path] = info
		}
	}
	for _, path := range s.files {
		add(path)
	}
	for _, folder := range s.folders {
		root := folder.path + string(filepath.Separator) // so that a symbolic link is followed
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // what cannot be read cannot be watched
			case entry.IsDir() && (folder.hides(path) || slices.Contains(s.except, filepath.Clean(path))):
				return fs.SkipDir
			case !entry.IsDir() && s.has(path):
				add(path)
			}
			return nil
		})
	}
	return found
}

// has reports whether a file belongs to the set.
func (s fileSet) has(path string) bool {
	if slices.Contains(s.files, path) {
		return true
	}
	in := func(folder string) bool { return below(folder, path) }
	return !slices.ContainsFunc(s.except, in) && slices.ContainsFunc(s.folders, func(f watchedFolder) bool {
		return in(f.path) && slices.Contains(f.extensions, filepath.Ext(path)) && !f.hides(path)
	})
}

// hides reports whether a name between a folder and a file below it begins with a dot.
func (f watchedFolder) hides(path string) bool {
	within, err := filepath.Rel(f.path, path)
	return err != nil || slices.ContainsFunc(strings.Split(within, string(filepath.Separator)), func(name string) bool {
		return name != "." && strings.HasPrefix(name, ".")
	})
}

// below reports whether a path is a folder or below it.
func below(folder, path string) bool {
	within, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(within)
}

// next waits for a burst of changes and returns the changed files, sorted. Changes since the last call count. The
// error is the cause of ctx.
func (w *watchedFiles) next(ctx context.Context) ([]string, error) {
	quiet := firstQuiet
	if !w.last.IsZero() && time.Since(w.last) < soon {
		quiet = laterQuiet
	}
	var first, latest time.Time // changes of the burst
	ticker := time.NewTicker(lookPause)
	defer ticker.Stop()
	for {
		if w.watch(w.set) || len(w.changed) > 0 && first.IsZero() {
			latest = time.Now()
			if first.IsZero() {
				first = latest
			}
		}
		if !first.IsZero() && (time.Since(latest) >= quiet || time.Since(first) >= longest) {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	w.last = time.Now()
	changed := slices.Sorted(maps.Keys(w.changed))
	clear(w.changed)
	return changed, nil
}
