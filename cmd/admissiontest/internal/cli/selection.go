package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
)

// selectionFlags is the set of scenarios that the arguments and --only of a command choose.
type selectionFlags struct {
	// catalogue has the scenarios that can be selected by name.
	catalogue fs.FS
	// stdin is read for the argument -.
	stdin io.Reader
	// note is called with a line about each file that has no scenario.
	note func(line string)

	// loaded are all scenarios that resolve read, selected or not.
	loaded []scenario.Scenario
	// fromFiles has the names of the scenarios and cases that resolve read from files of the command line.
	fromFiles map[string]bool

	only []string
}

// add adds --only to a command.
func (s *selectionFlags) add(command *cobra.Command) {
	command.Flags().StringSliceVar(&s.only, "only", nil, "of the scenarios that the arguments select, also those in FILE and DIR, only these: NAME, AREA or PATTERN")
}

// resolve loads the scenarios that args name and returns the selected ones, sorted by
// name. It reads only the named files, and the catalogue only if args need it. The options say
// which webhooks are installed for all scenarios.
func (s *selectionFlags) resolve(args []string, options scenario.LoadOptions) ([]scenario.Scenario, error) {
	var catalogue []scenario.Scenario
	var err error
	if len(args) == 0 || slices.ContainsFunc(args, func(arg string) bool { return !looksLikePath(arg) }) {
		if catalogue, err = scenario.Load(scenario.LoadOptions{FS: s.catalogue}); err != nil {
			return nil, errors.Join(errors.New("load the built-in catalogue: this is a bug of this build of admissiontest"), err)
		}
	}
	names, paths := sortArguments(args, engine.Names(catalogue))
	options.Input, options.PassedOver = s.stdin, s.note
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
			return nil, err
		}
	}
	if err := s.merge(selected, files); err != nil {
		return nil, err
	}
	s.loaded = append(catalogue, files...)
	selected = append(selected, files...)
	slices.SortFunc(selected, func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	if selected, err = engine.Select(selected, s.only, engine.Filter{}); err != nil && len(s.only) > 0 {
		err = fmt.Errorf("--only: %w", err)
	}
	return selected, err
}

// args returns the arguments and flags that select only one scenario.
func (s *selectionFlags) args(one scenario.Scenario) []string {
	if !s.fromFiles[one.Metadata.Name] {
		return []string{one.Metadata.Name}
	}
	file := one.File
	if !looksLikePath(file) || strings.HasPrefix(file, "-") && file != "-" { // otherwise it is read as a name or a flag
		file = "./" + file
	}
	if alone := !slices.ContainsFunc(scenario.Cases(s.loaded), func(other scenario.Scenario) bool {
		return other.File == one.File && other.Metadata.Name != one.Metadata.Name && s.fromFiles[other.Metadata.Name]
	}); alone {
		return []string{file}
	}
	return []string{file, "--only", one.Metadata.Name}
}

// merge records which scenarios are from files. It returns an error for a name that is
// also selected from the catalogue.
func (s *selectionFlags) merge(selected, files []scenario.Scenario) error {
	s.fromFiles = map[string]bool{}
	for _, file := range scenario.Cases(files) {
		s.fromFiles[file.Metadata.Name] = true
	}
	var errs []error
	for _, one := range scenario.Cases(selected) {
		if s.fromFiles[one.Metadata.Name] {
			errs = append(errs, fmt.Errorf("scenario %q is selected twice, from the catalogue and from a file; select one of them", one.Metadata.Name))
		}
	}
	if len(errs) > 0 {
		return withCode(exitUsage, errors.Join(errs...))
	}
	return nil
}

// looksLikePath reports whether an argument can only be a file or folder.
func looksLikePath(arg string) bool {
	switch filepath.Ext(arg) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return strings.Contains(arg, "/") || strings.ContainsRune(arg, filepath.Separator) || arg == "." || arg == ".." || arg == "-"
}

// sortArguments separates names from paths. A name of the catalogue takes precedence over
// a file of that name; ./NAME is the file.
func sortArguments(args, known []string) (names, paths []string) {
	for _, arg := range args {
		isPath := looksLikePath(arg)
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
