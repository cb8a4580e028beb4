package load

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/files"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// FS reads the scenarios of a catalogue: the given files and all *.yaml, *.yml and
// *.json files in the given folders and their subfolders. Without a path it reads
// all of fsys. The Area of a scenario is the first folder of its path, and "" for a
// file without one.
//
// The scenarios are sorted by name. The error joins a [*scenario.Error] for everything
// wrong in any file (see [scenario.Errors]); with an error, no scenario is returned.
func FS(fsys fs.FS, paths ...string) ([]scenario.Scenario, error) {
	return Options{}.FS(fsys, paths...)
}

// Paths reads the scenarios of files and folders of the operating system: the
// given files, with any name, and all *.yaml, *.yml and *.json files in the
// given folders and their subfolders, except those whose names begin with a dot. A
// file that is found twice is read once. Without a path it returns no scenarios.
// The Area of a scenario is the name of its file's folder.
//
// Paths ignores a file in a folder that is not meant to have scenarios, such as a Kubernetes manifest
// or a template. If the path of such a file is given, that is an error.
//
// Paths follows symbolic links within the tree that scenarios can refer to files in: the Git repository of the
// given folder, else its Go module, else the folder above it. In a given folder, a link out of the tree
// is an error, and so is a link to a folder that contains it.
// The order of the result and the errors are the same as for [FS].
func Paths(paths ...string) ([]scenario.Scenario, error) {
	found := files.NewFinder(nil)
	for _, path := range paths {
		found.OnDisk(path)
	}
	return Options{}.load(found)
}

// Options say how scenarios are read. The functions [FS] and [Paths] use the zero value.
type Options struct {
	// Input is read by the method Paths for the path "-", in YAML. The File of its scenarios is "-",
	// and the files that they refer to are relative to the working directory. Required if a path is "-".
	Input io.Reader
	// PassedOver is called with a line for each file that is passed over. Nil discards the lines.
	PassedOver func(line string)
	// Opened is called with the path of each file of the operating system that Paths reads, also if
	// that fails: those of scenarios, and those that they refer to. It is not called for the input and
	// the files that it refers to. Several goroutines call it at the same time. Nil does nothing.
	Opened func(path string)
	// Installed are the names of webhooks that are installed for all scenarios. Scenarios can expect
	// their calls.
	Installed []string
	// AnyInstalled is true if these names are not known. Then every name is accepted.
	AnyInstalled bool
	// AllowServerFlags are flags of kube-apiserver that scenarios can set besides those that every scenario
	// can set. Allow only flags of files that you trust: with some, kube-apiserver reads or writes any file of
	// the user, or executes a command. "*" is every flag, for a program that starts no API server.
	AllowServerFlags []string
}

// FS is the function [FS] with options.
func (o Options) FS(fsys fs.FS, paths ...string) ([]scenario.Scenario, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	found := files.NewFinder(o.Opened)
	for _, path := range paths {
		found.InFS(fsys, path)
	}
	return o.load(found)
}

// Paths is the function [Paths] with options. The path "-" is the input.
func (o Options) Paths(paths ...string) ([]scenario.Scenario, error) {
	found := files.NewFinder(o.Opened)
	for _, path := range paths {
		if path == files.InputName {
			found.Input(o.Input)
			continue
		}
		found.OnDisk(path)
	}
	return o.load(found)
}

// load reads, decodes and checks the files that were found.
func (o Options) load(found *files.Finder) ([]scenario.Scenario, error) {
	results := make([]loaded, len(found.Files))
	structs := grammar.StructsOf(reflect.TypeFor[scenario.Scenario](), reflect.TypeFor[scenario.PolicyTest]())
	var readers errgroup.Group
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range found.Files {
		readers.Go(func() error {
			results[i] = o.file(file, structs)
			return nil
		})
	}
	_ = readers.Wait() // no function returns an error

	problems := found.Errors
	rank := make(map[string]int, len(found.Files))
	var all []scenario.Scenario
	for i, result := range results {
		rank[found.Files[i].Name] = i + 1 // 0 is the rank of paths that cannot be opened
		if result.passedOver != "" && o.PassedOver != nil {
			o.PassedOver(fmt.Sprintf("ignored %s: %s", found.Files[i].Name, result.passedOver))
		}
		problems = append(problems, result.errors...)
		all = append(all, result.scenarios...)
	}
	problems = append(problems, duplicates(all)...)
	if len(problems) > 0 {
		return nil, decode.Join(problems, rank)
	}
	slices.SortStableFunc(all, func(a, b scenario.Scenario) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return all, nil
}

// duplicates reports each scenario and case with the name of an earlier one.
func duplicates(all []scenario.Scenario) []*scenario.Error {
	var problems []*scenario.Error
	first := make(map[string]scenario.Scenario, len(all))
	for _, one := range scenario.Cases(all) {
		name := one.Metadata.Name
		if name == "" {
			continue
		}
		if earlier, twice := first[name]; twice {
			problems = append(problems, &scenario.Error{
				File: one.File, Line: one.Line, Column: one.Column,
				Message: fmt.Sprintf("another scenario has the name %s; expected a unique name", strictyaml.Quote(name)),
				Hint:    fmt.Sprintf("the other is at %s:%d:%d: rename one", earlier.File, earlier.Line, earlier.Column),
			})
			continue
		}
		first[name] = one
	}
	return problems
}
