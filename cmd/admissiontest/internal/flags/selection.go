package flags

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Selection is the set of scenarios that the arguments, --only and --level of a command choose.
type Selection struct {
	// Catalogue has the scenarios that can be selected by name.
	Catalogue fs.FS
	// Stdin is read for the argument -.
	Stdin io.Reader
	// Note is called with a line about each file that has no scenario.
	Note func(line string)

	// Loaded are all scenarios that Resolve read, selected or not.
	Loaded []scenario.Scenario
	// FromFiles has the names of the scenarios and cases that Resolve read from files of the command line.
	FromFiles map[string]bool

	levels, only []string
}

// Add adds --level and --only to a command.
func (s *Selection) Add(command *cobra.Command) {
	command.Flags().StringSliceVar(&s.only, "only", nil, "of the scenarios that the arguments select, also those in FILE and DIR, only these: NAME, AREA or PATTERN")
	_ = command.RegisterFlagCompletionFunc("only", s.CompleteNames)
	var levels []string
	for _, level := range framework.Levels() {
		levels = append(levels, string(level))
	}
	command.Flags().StringSliceVar(&s.levels, "level", nil, "only these levels: "+strings.Join(levels, ", "))
	Complete(command, "level", levels...)
}

// filter returns the filter of --level.
func (s *Selection) filter() (engine.Filter, error) {
	var filter engine.Filter
	var known []string
	for _, level := range framework.Levels() {
		known = append(known, string(level))
	}
	for _, text := range s.levels {
		level := framework.Level(strings.ToUpper(strings.TrimSpace(text)))
		if !slices.Contains(framework.Levels(), level) {
			return filter, exit.Usagef("--level %q: want %s%s", text, strings.Join(known, ", "), suggest.DidYouMean(text, known))
		}
		filter.Levels = append(filter.Levels, level)
	}
	return filter, nil
}

// Resolve loads the scenarios that args name and returns the selected ones, sorted by
// name. It reads only the named files, and the catalogue only if args need it. The options say
// which webhooks are installed for all scenarios.
func (s *Selection) Resolve(args []string, options scenario.LoadOptions) ([]scenario.Scenario, error) {
	filter, err := s.filter()
	if err != nil {
		return nil, err
	}
	var catalogue []scenario.Scenario
	if len(args) == 0 || slices.ContainsFunc(args, func(arg string) bool { return !LooksLikePath(arg) }) {
		if catalogue, err = scenario.Load(scenario.LoadOptions{FS: s.Catalogue}); err != nil {
			return nil, errors.Join(errors.New("load the built-in catalogue: this is a bug of this build of admissiontest"), err)
		}
	}
	names, paths := SortArguments(args, engine.Names(catalogue))
	options.Input, options.PassedOver = s.Stdin, s.Note
	files, err := scenario.Load(options, paths...)
	if err != nil {
		return nil, err
	}
	if len(paths) > 0 && len(files) == 0 {
		return nil, fmt.Errorf("read %s: %w: found no scenario; want *.yaml, *.yml or *.json files with scenarios", strings.Join(paths, ", "), engine.ErrNothingSelected)
	}
	var selected []scenario.Scenario
	if len(paths) == 0 || len(names) > 0 {
		if selected, err = engine.Select(catalogue, names, engine.Filter{}); err != nil {
			return nil, inFiles(err, files, names)
		}
	}
	if err := s.merge(selected, files); err != nil {
		return nil, err
	}
	s.Loaded = append(catalogue, files...)
	selected = append(selected, files...)
	slices.SortFunc(selected, func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	if selected, err = engine.Select(selected, s.only, engine.Filter{}); err != nil && len(s.only) > 0 {
		return nil, fmt.Errorf("--only: %w", err)
	}
	return engine.Select(selected, nil, filter)
}

// inFiles returns the error of names that the catalogue does not have, with the advice to use --only
// if scenarios of files have them.
func inFiles(err error, files []scenario.Scenario, names []string) error {
	for _, name := range names {
		if found, _ := engine.Match(files, name); len(found) > 0 {
			return fmt.Errorf("%w; a NAME or PATTERN is of the catalogue: to select %s in the given files, write --only %s", err, found[0], shellescape.Quote(name))
		}
	}
	return err
}

// Args returns the arguments and flags that select only one scenario.
func (s *Selection) Args(one scenario.Scenario) []string {
	if !s.FromFiles[one.Metadata.Name] {
		return []string{one.Metadata.Name}
	}
	file := one.File
	if !LooksLikePath(file) || strings.HasPrefix(file, "-") && file != "-" { // otherwise it is read as a name or a flag
		file = "./" + file
	}
	if alone := !slices.ContainsFunc(scenario.Cases(s.Loaded), func(other scenario.Scenario) bool {
		return other.File == one.File && other.Metadata.Name != one.Metadata.Name && s.FromFiles[other.Metadata.Name]
	}); alone {
		return []string{file}
	}
	return []string{file, "--only", one.Metadata.Name}
}

// merge records which scenarios are from files. It returns an error for a name that is
// also selected from the catalogue.
func (s *Selection) merge(selected, files []scenario.Scenario) error {
	s.FromFiles = map[string]bool{}
	for _, file := range scenario.Cases(files) {
		s.FromFiles[file.Metadata.Name] = true
	}
	var errs []error
	for _, one := range scenario.Cases(selected) {
		if s.FromFiles[one.Metadata.Name] {
			errs = append(errs, fmt.Errorf("scenario %q is selected twice, from the catalogue and from a file; select one of them", one.Metadata.Name))
		}
	}
	if len(errs) > 0 {
		return exit.New(exit.Usage, errors.Join(errs...))
	}
	return nil
}

// LooksLikePath reports whether an argument can only be a file or folder.
func LooksLikePath(arg string) bool {
	switch filepath.Ext(arg) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return strings.Contains(arg, "/") || strings.ContainsRune(arg, filepath.Separator) || arg == "." || arg == ".." || arg == "-"
}

// SortArguments separates names from paths. A name of the catalogue takes precedence over
// a file of that name; ./NAME is the file.
func SortArguments(args, known []string) (names, paths []string) {
	for _, arg := range args {
		isPath := LooksLikePath(arg)
		if !isPath && !slices.Contains(known, arg) {
			_, err := os.Stat(arg)
			isPath = err == nil && arg != ""
		}
		if isPath {
			paths = append(paths, arg)
		} else {
			names = append(names, arg)
		}
	}
	return names, paths
}

// CompleteNames completes areas and scenarios of the catalogue, and files.
func (s *Selection) CompleteNames(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	all, err := scenario.Load(scenario.LoadOptions{FS: s.Catalogue})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, name := range engine.Names(all) {
		if strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}
