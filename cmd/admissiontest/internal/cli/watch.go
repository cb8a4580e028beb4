package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
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
	// known has the content of each scenario, by name, at the last run that had a result. Nil means that there was none.
	// changed has the files that changed since then, as resolved returns them.
	known   map[string]string
	changed map[string]bool
	code    int
}

// watch implements run --watch.
func (a *app) watch(ctx context.Context, f *runFlags, args []string) error {
	w := &watchLoop{app: a, flags: f, args: args, provider: a.provider, changed: map[string]bool{}, code: exitInterrupted}
	if err := w.check(); err != nil {
		return err
	}
	w.files.begin(w.roots())
	for ctx.Err() == nil {
		first := w.known == nil
		w.round(ctx)
		if first {
			a.note("waiting for changes; interrupt to end")
		}
		changed, err := w.files.next(ctx)
		if err != nil {
			break
		}
		for _, path := range changed {
			w.changed[resolved(path)] = true
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
	case f.reportDir != "" && slices.ContainsFunc(w.args, func(arg string) bool { return userfile.Within(absolute(arg), absolute(f.reportDir)) }):
		return usagef("--report %s is in a folder of scenarios, which is watched; want another folder", f.reportDir)
	case len(w.roots()) == 0:
		return usagef("--watch: there is nothing to watch; want a FILE or DIR of scenarios, --plugin, --install, or a PROGRAM")
	}
	return nil
}

// round reads the scenarios and runs those that changed. It prints errors in scenarios.
func (w *watchLoop) round(ctx context.Context) {
	f := *w.flags
	_, err := untilInterrupted(ctx, func() (struct{}, error) { return struct{}{}, w.plan(&f, w.args, w.files.add) })
	if ctx.Err() != nil {
		return
	}
	var known map[string]string
	if err == nil {
		f.run.Scenarios, known = w.choose(f.run.Scenarios)
		if len(f.run.Scenarios) == 0 {
			return
		}
		err = w.run(ctx, &f)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) { // an interrupt while a result is printed does not change the result
			return
		}
	}
	printError(w.Stderr, err)
	switch w.code = codeOf(err); w.code {
	case exitPass, exitFail, exitNothing: // otherwise the same scenarios are due again
		w.known = known
		clear(w.changed)
	}
}

// run runs the chosen scenarios.
func (w *watchLoop) run(ctx context.Context, f *runFlags) error {
	if w.provider == nil {
		w.provider = f.target.provider(w.note, "", nil)
	}
	a := *w.app
	a.provider = w.provider
	return a.execute(ctx, f)
}

// choose returns the scenarios to run, and the content of all scenarios.
func (w *watchLoop) choose(all []scenario.Scenario) (chosen []scenario.Scenario, known map[string]string) {
	everything := w.known == nil
	for path := range w.changed {
		everything = w.forAll(path) || everything
	}
	known, due := map[string]string{}, map[string]bool{}
	for _, s := range scenario.Cases(all) {
		name := s.Metadata.Name
		known[name] = content(s)
		due[name] = everything || known[name] != w.known[name] || w.changed[resolved(s.File)]
	}
	chosen = scenario.Keep(all, func(s scenario.Scenario) bool { return due[s.Metadata.Name] })
	if len(chosen) > 0 {
		w.note(fmt.Sprintf("running %d of %d scenarios", len(scenario.Cases(chosen)), len(known)))
	}
	return chosen, known
}

// content returns everything in a scenario that can change its outcome, including the content of
// other files that it refers to.
func content(s scenario.Scenario) string {
	data, err := json.Marshal(s.Spec)
	if err != nil {
		return err.Error() // cannot happen: every type in a Spec has a JSON form
	}
	return string(data)
}

// roots returns the files and folders to watch.
func (w *watchLoop) roots() []string {
	_, paths := sortArguments(w.args, nil)
	all := slices.Concat(paths, w.flags.install, w.pluginFolders())
	if found := w.programFile(); found != "" {
		all = append(all, found)
	}
	return all
}

// forAll reports whether all scenarios must run because of a changed file: a file of a plugin, a
// file of --install, or the program. For a file of a plugin, the API server is built again.
func (w *watchLoop) forAll(path string) bool {
	within := func(folder string) bool { return userfile.Within(resolved(folder), path) }
	if !isManifest(path) && slices.ContainsFunc(w.pluginFolders(), within) {
		w.provider = nil
		return true
	}
	return slices.ContainsFunc(w.flags.install, within) || path == resolved(w.programFile())
}

// isManifest reports whether a file is of scenarios or manifests, and not of a plugin.
func isManifest(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
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

// resolved returns the absolute path of a file without symbolic links, if it exists.
func resolved(path string) string {
	found, err := filepath.EvalSymlinks(absolute(path))
	if err != nil {
		return absolute(path)
	}
	return found
}

// lookPause is the time between two looks at the watched files. Changes belong together until a look finds no more.
const lookPause = 100 * time.Millisecond

// watchedFiles notices changes of files, as editors, compilers and git make them: by writing, by renaming another
// file to the name, or by removing a folder and making it again. It looks at them again and again, which needs
// nothing of the system and works on each file system.
type watchedFiles struct {
	// roots are files, and folders with the files below them. They need not exist.
	roots []string

	mu   sync.Mutex
	seen map[string]fs.FileInfo // by absolute path; nil if it does not exist
}

// begin watches files and folders.
func (w *watchedFiles) begin(roots []string) {
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
	for _, root := range w.roots {
		root = absolute(root)
		info, err := os.Stat(root)
		if err != nil || !info.IsDir() {
			found[root] = info
			continue
		}
		root += string(filepath.Separator) // so that a symbolic link is followed
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch hidden := path != root && strings.HasPrefix(filepath.Base(path), "."); {
			case err != nil: // what cannot be read cannot be watched
			case hidden && entry.IsDir():
				return fs.SkipDir
			case !hidden && !entry.IsDir() && (isManifest(path) || slices.Contains([]string{".go", ".mod", ".sum", ".s", ".h"}, filepath.Ext(path))):
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
