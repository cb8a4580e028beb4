package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
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
	// provider is made again when a plugin has changed. Nil means that it must be made.
	provider target.Provider
	// opened are the files that scenarios were read from.
	opened map[string]bool
	// known has the content of each scenario when it was read the last time, by name.
	known map[string]string
	// pending are the changed files that have not been read yet. due are the names of the scenarios
	// to run. A file stays in pending until it is read without errors. A scenario stays in due
	// until a run ends with a result.
	pending, due map[string]bool
	code         int
}

// watch implements run --watch.
func (a *app) watch(ctx context.Context, f *runFlags, args []string) error {
	w := &watchLoop{app: a, flags: f, args: args, pending: map[string]bool{}, due: map[string]bool{}, code: exitInterrupted}
	if err := w.check(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		first := w.known == nil
		w.round(ctx)
		if first {
			a.note("waiting for changes; interrupt to end")
		}
		changed, err := untilInterrupted(ctx, func() ([]string, error) { return w.files.next(ctx) })
		if err != nil {
			break
		}
		for _, path := range changed {
			w.pending[path] = true
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
	case f.reportDir != "" && slices.ContainsFunc(w.args, func(arg string) bool { return absolute(arg) == absolute(f.reportDir) }):
		return usagef("--report %s is a folder of scenarios, which is watched; want another folder", f.reportDir)
	}
	if set := w.set(); len(set.files)+len(set.folders) == 0 {
		return usagef("--watch: there is nothing to watch; want a FILE or DIR of scenarios, --plugin, --install, or a PROGRAM")
	}
	return nil
}

// round reads the scenarios and runs those that changed. It prints errors in scenarios.
func (w *watchLoop) round(ctx context.Context) {
	f := *w.flags
	opened := opened{paths: map[string]bool{}}
	w.watchFiles(ctx)
	_, err := untilInterrupted(ctx, func() (struct{}, error) { return struct{}{}, w.plan(&f, w.args, opened.add) })
	if ctx.Err() != nil {
		return
	}
	if err != nil { // a file that could not be read, and what it refers to, is still watched
		maps.Copy(opened.paths, w.opened)
	}
	w.opened = opened.paths
	if w.watchFiles(ctx); ctx.Err() != nil {
		return
	}
	if err != nil {
		printError(w.Stderr, err)
		w.code = codeOf(err)
		for _, problem := range scenario.Errors(err) { // the scenarios of this file run when it can be read again
			w.pending[absolute(problem.File)] = true
		}
		return
	}
	if f.run.Scenarios = w.choose(f.run.Scenarios); len(f.run.Scenarios) == 0 {
		return
	}
	err = w.execute(ctx, &f, func() (display, target.Provider) {
		return &verdicts{app: w.app, verbose: f.verbose}, w.targets()
	})
	if !wasInterrupted(ctx, err) {
		w.ran(err)
	}
}

// watchFiles watches the files of the command line and those that were read, unless an interrupt ends it.
func (w *watchLoop) watchFiles(ctx context.Context) {
	_, _ = untilInterrupted(ctx, func() (bool, error) { return w.files.watch(w.set()), nil })
}

// wasInterrupted reports whether an interrupt ended a run before all its scenarios were done. An
// interrupt while the result of a complete run is printed does not change this result.
func wasInterrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// ran records how a run ended, and prints its error.
func (w *watchLoop) ran(err error) {
	w.code = codeOf(err)
	switch w.code {
	case exitPass, exitFail, exitNothing:
		clear(w.due)
	}
	printError(w.Stderr, err)
}

// choose returns the scenarios to run, and records the content of all scenarios.
func (w *watchLoop) choose(all []scenario.Scenario) []scenario.Scenario {
	everything := w.known == nil
	for path := range w.pending {
		everything = w.forAll(path) || everything
	}
	known := map[string]string{}
	for _, s := range scenario.Cases(all) {
		name := s.Metadata.Name
		known[name] = content(s)
		if everything || known[name] != w.known[name] || w.pending[absolute(s.File)] || w.pending[resolved(s.File)] {
			w.due[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		if _, found := known[name]; !found {
			w.note("gone: " + name)
			delete(w.due, name)
		}
	}
	chosen := scenario.Keep(all, func(s scenario.Scenario) bool { return w.due[s.Metadata.Name] })
	if len(chosen) > 0 {
		text := fmt.Sprintf("running %d of %d scenarios", len(scenario.Cases(chosen)), len(known))
		if changed := w.names(); len(changed) > 0 {
			text += "; changed: " + strings.Join(changed, ", ")
		}
		w.note(text)
	}
	w.known = known
	clear(w.pending)
	return chosen
}

// names returns the changed files, with paths relative to the working directory if the files are in
// it. It leaves out files that existed only for a moment.
func (w *watchLoop) names() []string {
	var names []string
	here := absolute(".")
	for _, path := range slices.Sorted(maps.Keys(w.pending)) {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if within, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(within) {
			path = within
		}
		names = append(names, path)
	}
	return names
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

// targets returns the provider of the targets. It returns the same provider, which knows the
// binaries, until a plugin changes.
func (w *watchLoop) targets() target.Provider {
	if w.app.provider != nil {
		return w.app.provider
	}
	if w.provider == nil {
		w.provider = w.flags.target.provider(w.note)
	}
	return w.provider
}

// set returns the files to watch.
func (w *watchLoop) set() fileSet {
	var set fileSet
	add := func(path string, extensions ...string) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			set.folders = append(set.folders, watchedFolder{absolute(path), extensions})
		} else {
			set.files = append(set.files, absolute(path))
		}
	}
	_, paths := sortArguments(w.args, nil)
	for _, path := range slices.Concat(paths, w.flags.install) {
		add(path, ".yaml", ".yml", ".json")
	}
	for _, path := range w.pluginFolders() {
		add(path, goExtensions()...)
	}
	if found := w.programFile(); found != "" {
		add(found)
	}
	for path := range w.opened {
		set.files = append(set.files, absolute(path))
	}
	if w.flags.reportDir != "" {
		set.except = []string{absolute(w.flags.reportDir)}
	}
	return set
}

// forAll reports whether all scenarios must run because of a changed file: a file of a plugin, a
// file of --install, or the program. For a file of a plugin, the API server is built again.
func (w *watchLoop) forAll(path string) bool {
	within := func(folder string) bool { return below(resolved(folder), resolved(path)) }
	if slices.Contains(goExtensions(), filepath.Ext(path)) && slices.ContainsFunc(w.pluginFolders(), within) {
		w.provider = nil
		return true
	}
	return slices.ContainsFunc(w.flags.install, within) || resolved(path) == resolved(w.programFile())
}

// goExtensions returns the extensions of the files of a plugin. Other files in the folder of a
// plugin can be scenarios.
func goExtensions() []string { return []string{".go", ".mod", ".sum", ".s", ".h"} }

// pluginFolders returns the folders that --plugin names.
func (w *watchLoop) pluginFolders() []string {
	var folders []string
	for _, one := range w.flags.target.assets.plugins {
		if looksLikePath(one.Package) {
			if info, err := os.Stat(one.Package); err == nil && info.IsDir() {
				folders = append(folders, one.Package)
			}
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

// opened collects paths.
type opened struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (o *opened) add(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paths[path] = true
}

// verdicts is a progress that prints each outcome on standard output as soon as it is known.
type verdicts struct {
	*app
	verbose bool

	mu sync.Mutex
}

// Stage prints nothing.
func (*verdicts) Stage(string) {}

// Line prints a line.
func (v *verdicts) Line(text string) { v.note(text) }

// Close does nothing.
func (*verdicts) Close() {}

// Done prints an outcome.
func (v *verdicts) Done(outcome report.Outcome) {
	if outcome.NotReached {
		return // the error of the run says why
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = report.WriteOutcome(v.Stdout, outcome, report.ConsoleOptions{Verbose: v.verbose, Color: v.color(v.Stdout)})
}
