package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// LoadOptions say where scenarios are, and how they are read.
type LoadOptions struct {
	// FS has the files. The Area of a scenario is the first folder of its path, and "" for a file without
	// one. Without a path, Load reads all of it. Nil is the operating system.
	FS fs.FS
	// Input is read for the path "-", in YAML, if FS is nil. The File of its scenarios is "-",
	// and the files that they refer to are relative to the working directory. Required if a path is "-".
	Input io.Reader
	// PassedOver is called with a line for each file that is passed over. Nil discards the lines.
	PassedOver func(line string)
	// Opened is called with the path of each file of the operating system that Load reads, also if
	// that fails: files with scenarios, and files that they refer to. It is not called for the input and
	// the files that it refers to. Several goroutines call it at the same time. Nil does nothing.
	Opened func(path string)
	// Installed are the names of webhooks that are installed for all scenarios. Scenarios can expect
	// their calls.
	Installed []string
	// AnyInstalled is true if these names are not known. Then every name is accepted.
	AnyInstalled bool
	// Samples takes samples from the cases of each PolicyTest, as if each had the field contract: see Scenario.ContractOf.
	Samples bool
	// AllowServerFlags are flags of kube-apiserver that scenarios can set besides those that every scenario
	// can set. Allow only flags of files that you trust: with some, kube-apiserver reads or writes any file of
	// the user, or executes a command. "*" is every flag, for a program that starts no API server.
	AllowServerFlags []string
}

// Load reads the scenarios of files and folders: the given files, with any name, and all *.yaml, *.yml and
// *.json files in the given folders and their subfolders, except those whose names begin with a dot. A
// file that is found twice is read once. The Area of a scenario is the name of its file's folder. Without a
// path it returns no scenarios. [LoadOptions.FS] says what is different in an fs.FS.
//
// The scenarios are sorted by name. The error joins an [*Error] for everything
// wrong in any file (see [Errors]); with an error, no scenario is returned.
//
// Load ignores a file in a folder of the operating system that is not meant to have scenarios, such as a
// Kubernetes manifest or a template. If the path of such a file is given, that is an error.
//
// Load follows symbolic links to files within the tree that scenarios can refer to files in: the Git repository of the
// given folder, else its Go module, else the folder above it. In a given folder, a link out of the tree or to a folder
// is an error.
func Load(options LoadOptions, paths ...string) ([]Scenario, error) {
	found := document.NewFinder(options.Opened)
	if options.FS != nil && len(paths) == 0 {
		paths = []string{"."}
	}
	for _, path := range paths {
		switch {
		case options.FS != nil:
			found.InFS(options.FS, path)
		case path == document.InputName:
			found.Input(options.Input)
		default:
			found.OnDisk(path)
		}
	}
	return options.load(found)
}

// load reads, decodes and checks the files that were found.
func (o LoadOptions) load(found *document.Finder) ([]Scenario, error) {
	results := make([]loaded, len(found.Files))
	format, err := theFormat()
	if err != nil {
		return nil, err
	}
	var readers errgroup.Group
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range found.Files {
		readers.Go(func() error {
			results[i] = o.read(file, format)
			return nil
		})
	}
	_ = readers.Wait() // no function returns an error

	problems := found.Problems
	var all []Scenario
	for i, result := range results {
		if result.foreign && o.PassedOver != nil {
			o.PassedOver(fmt.Sprintf("ignored %s: not a Scenario", found.Files[i].Name))
		}
		problems = append(problems, limit(result.problems)...)
		all = append(all, result.scenarios...)
	}
	if problems = append(problems, duplicates(all)...); len(problems) > 0 {
		return nil, join(problems)
	}
	slices.SortStableFunc(all, func(a, b Scenario) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return all, nil
}

// duplicates reports each scenario and case with the name of an earlier one.
func duplicates(all []Scenario) []document.Problem {
	var problems []document.Problem
	first := make(map[string]Scenario, len(all))
	for _, one := range Cases(all) {
		earlier, twice := first[one.Metadata.Name]
		if !twice {
			first[one.Metadata.Name] = one
			continue
		}
		problems = append(problems, document.Problem{
			At:      document.At(one.File, one.Line, one.Column),
			Message: fmt.Sprintf("another scenario has the name %s; expected a unique name", document.Quote(one.Metadata.Name)),
			Hint:    fmt.Sprintf("the other is at %s:%d:%d: rename one", earlier.File, earlier.Line, earlier.Column),
		})
	}
	return problems
}

// limit sorts problems of a file by position. If there are more than document.MaxProblems, it returns the first ones, and
// one that says how many.
func limit(problems []document.Problem) []document.Problem {
	const most = document.MaxProblems
	slices.SortStableFunc(problems, func(a, b document.Problem) int {
		return cmp.Or(cmp.Compare(a.At.File(), b.At.File()), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	if len(problems) <= most {
		return problems
	}
	return append(problems[:most:most], document.Problem{
		At:      problems[most-1].At,
		Message: fmt.Sprintf("and %d more errors; expected a file of scenarios", len(problems)-most), Hint: "fix those above first",
	})
}

// join joins an Error for each problem, without duplicates.
func join(problems []document.Problem) error {
	var all []error
	seen := map[Error]bool{}
	for _, one := range problems {
		next := Error{File: one.At.File(), Line: one.At.Line, Column: one.At.Column, Message: one.Message, Hint: one.Hint}
		if !seen[next] {
			all = append(all, &next)
		}
		seen[next] = true
	}
	return errors.Join(all...)
}
