package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// lastRunError is the error of run --watch after an interrupt. It has the exit code of the last
// run.
type lastRunError struct{ code int }

// Error returns nothing to print: the run was reported.
func (*lastRunError) Error() string { return "" }

// watchLoop is the state of run --watch.
type watchLoop struct {
	*app
	flags *runFlags
	args  []string
	files watchedFiles
	// provider knows the binaries. It is made again when a plugin has changed. Nil means that it must be made.
	provider target.Provider
	code     int
}

// watch implements run --watch.
func (a *app) watch(ctx context.Context, f *runFlags, args []string) error {
	w := &watchLoop{app: a, flags: f, args: args, provider: a.provider, code: exitInterrupted}
	if err := w.check(); err != nil {
		return err
	}
	w.files.begin(w.roots())
	for first := true; ctx.Err() == nil; first = false {
		w.round(ctx)
		if first {
			a.note("waiting for changes; interrupt to end")
		}
		changed, err := w.files.next(ctx)
		if err != nil {
			break
		}
		if slices.ContainsFunc(changed, w.ofPlugin) { // the API server is built again
			w.provider = nil
		}
	}
	return &lastRunError{w.code}
}

// check returns a usage error for flags that do not fit --watch.
func (w *watchLoop) check() error {
	f := w.flags
	asJSON, err := f.output.json()
	switch {
	case err != nil:
		return err
	case asJSON:
		return usagef("--watch cannot be combined with --output json, which prints one document for a single run")
	case f.shard != "":
		return usagef("--watch cannot be combined with --shard: each run selects the scenarios that changed")
	case slices.Contains(w.args, "-"):
		return usagef("--watch cannot be combined with -, because standard input can be read only once")
	case f.target.name == framework.TargetKind:
		return usagef("--watch with --target kind would create a cluster for each run; create one, and use its kubeconfig")
	case f.target.report.dir != "" && slices.ContainsFunc(w.args, func(arg string) bool { return userfile.Within(absolute(arg), absolute(f.target.report.dir)) }):
		return usagef("--report %s is in a folder of scenarios, which is watched; want another folder", f.target.report.dir)
	case len(w.roots()) == 0:
		return usagef("--watch: there is nothing to watch; want a FILE or DIR of scenarios, --plugin, --install, or a PROGRAM")
	}
	return nil
}

// round reads the scenarios and runs them. It prints errors in scenarios.
func (w *watchLoop) round(ctx context.Context) {
	f := *w.flags
	_, err := untilInterrupted(ctx, func() (struct{}, error) { return struct{}{}, w.plan(&f, w.args, w.files.add) })
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		if w.provider == nil {
			w.provider = f.target.provider(w.note)
		}
		a := *w.app
		a.provider = w.provider
		err = a.execute(ctx, &f)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) { // an interrupt while a result is printed does not change the result
			return
		}
	}
	printError(w.Stderr, err)
	w.code = codeOf(err)
}

// roots returns the files and folders to watch, and with which extensions those in a folder.
func (w *watchLoop) roots() map[string][]string {
	all := map[string][]string{}
	_, paths := sortArguments(w.args, nil)
	for _, path := range slices.Concat(paths, w.flags.install) {
		all[absolute(path)] = []string{".yaml", ".yml", ".json"}
	}
	for _, folder := range w.pluginFolders() {
		all[absolute(folder)] = goExtensions()
	}
	if found := w.programFile(); found != "" {
		all[absolute(found)] = nil
	}
	return all
}

// goExtensions returns the extensions of the files of a plugin.
func goExtensions() []string { return []string{".go", ".mod", ".sum", ".s", ".h"} }

// ofPlugin reports whether a file is of a plugin.
func (w *watchLoop) ofPlugin(path string) bool {
	return slices.Contains(goExtensions(), filepath.Ext(path)) && slices.ContainsFunc(w.pluginFolders(), func(folder string) bool {
		return userfile.Within(absolute(folder), path)
	})
}

// pluginFolders returns the folders that --plugin names.
func (w *watchLoop) pluginFolders() []string {
	var folders []string
	for _, one := range w.flags.target.assets.plugins {
		if looksLikePath(one.Package) {
			folders = append(folders, one.Package)
		}
	}
	return folders
}

// programFile returns the file of the program after --, or "".
func (w *watchLoop) programFile() string {
	if len(w.flags.program.Command) == 0 {
		return ""
	}
	path, err := processes.FindProgram(w.flags.program.Command[0])
	if err != nil {
		return w.flags.program.Command[0]
	}
	return path
}

// absolute returns the absolute path of a file.
func absolute(path string) string {
	found, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return found
}

// lookPause is the time between two looks at the watched files. Changes belong together until a look finds no more.
const lookPause = 100 * time.Millisecond

// watchedFiles notices changes of files, as editors, compilers and git make them: by writing, by renaming another
// file to the name, or by removing a folder and making it again. It looks at them again and again, which needs
// nothing of the system and works on each file system.
type watchedFiles struct {
	// roots are files, and folders with the files below them that have one of the extensions. They need not exist.
	roots map[string][]string

	mu   sync.Mutex
	seen map[string]fs.FileInfo // by absolute path; nil if it does not exist
}

// begin watches files and folders.
func (w *watchedFiles) begin(roots map[string][]string) {
	w.roots = roots
	w.seen = w.look()
}

// add also watches a file.
func (w *watchedFiles) add(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path = absolute(path); w.seen[path] == nil {
		w.seen[path], _ = os.Stat(path) // nil if it does not exist
	}
}

// look returns the watched files.
func (w *watchedFiles) look() map[string]fs.FileInfo {
	found := map[string]fs.FileInfo{}
	for path := range w.seen {
		found[path], _ = os.Stat(path)
	}
	for root, extensions := range w.roots {
		info, err := os.Stat(root)
		if err != nil || !info.IsDir() {
			found[root] = info
			continue
		}
		root += string(filepath.Separator) // so that a symbolic link is followed
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch hidden := path != root && strings.HasPrefix(filepath.Base(path), "."); {
			case err != nil:
				return nil //nolint:nilerr // what cannot be read cannot be watched
			case hidden && entry.IsDir():
				return fs.SkipDir
			case !hidden && !entry.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
				found[path], _ = os.Stat(path)
			}
			return nil
		})
	}
	return found
}

// next waits for changes and returns the changed files. Changes since the last call count. The error is the cause of ctx.
func (w *watchedFiles) next(ctx context.Context) ([]string, error) {
	var changed []string
	ticker := time.NewTicker(lookPause)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		before := w.seen
		w.seen = w.look()
		quiet := true
		for path, now := range w.seen {
			if !sameFile(before[path], now) {
				changed, quiet = append(changed, path), false
			}
		}
		w.mu.Unlock()
		if quiet && len(changed) > 0 {
			return changed, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sameFile reports whether a file has not changed between two looks.
func sameFile(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before == nil && after == nil
	}
	return os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
}
