package scenario

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// Load reads the scenarios of a catalogue: the given files and all *.yaml, *.yml and
// *.json files in the given folders and their subfolders. Without a path it reads
// all of fsys. The Area of a scenario is the first folder of its path, and "" for a
// file without one.
//
// The scenarios are sorted by name. The error joins an *Error for everything wrong
// in any file (see [Errors]); with an error, no scenario is returned.
func Load(fsys fs.FS, paths ...string) ([]Scenario, error) { return LoadOptions{}.Load(fsys, paths...) }

// LoadPaths reads the scenarios of files and folders of the operating system: the
// given files, with any name, and all *.yaml, *.yml and *.json files in the
// given folders and their subfolders, except those whose names begin with a dot. A
// file that is found twice is read once. Without a path it returns no scenarios.
// The Area of a scenario is the name of its file's folder.
//
// A file in a folder that is not meant to be one of scenarios is passed over, whatever it has: a
// Kubernetes manifest, a template. One that is given itself is an error.
//
// LoadPaths follows symbolic links; a link to a folder that contains it is an error.
// The order of the result and the errors are those of [Load].
func LoadPaths(paths ...string) ([]Scenario, error) {
	found := &finder{seen: map[string]bool{}}
	for _, path := range paths {
		found.onDisk(path)
	}
	return found.load()
}

// LoadOptions say how scenarios are read.
type LoadOptions struct {
	// Input is read by LoadPaths for the path "-", in YAML. The File of its scenarios is "-", and the files
	// that they refer to are relative to the working directory. Required if a path is "-".
	Input io.Reader
	// PassedOver is called with a line for each file that is passed over. Nil discards the lines.
	PassedOver func(line string)
	// Opened is called with the path of each file that is read, also if that fails: those of scenarios,
	// and those that they refer to. Several goroutines call it at the same time. Nil does nothing.
	Opened func(path string)
	// Installed are the names of webhooks that are installed for all scenarios. Scenarios can expect
	// their calls.
	Installed []string
	// AnyInstalled is true if these names are not known. Then every name is accepted.
	AnyInstalled bool
}

// Load is [Load] with options.
func (o LoadOptions) Load(fsys fs.FS, paths ...string) ([]Scenario, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	found := &finder{seen: map[string]bool{}, options: o}
	for _, path := range paths {
		found.inFS(fsys, path)
	}
	return found.load()
}

// LoadPaths is [LoadPaths] with options. The path "-" is the input.
func (o LoadOptions) LoadPaths(paths ...string) ([]Scenario, error) {
	found := &finder{seen: map[string]bool{}, options: o}
	for _, path := range paths {
		if path == inputName {
			found.input(o.Input)
			continue
		}
		found.onDisk(path)
	}
	return found.load()
}

// kindUncovered is the kind of a list of behaviours without a scenario. The loader
// skips such documents.
const kindUncovered = "Uncovered"

// loaded is the result for one file.
type loaded struct {
	scenarios []located
	// passedOver says why the file is passed over, or is empty.
	passedOver string
	errors     []*Error
}

// located is a scenario with the position of its name.
type located struct {
	Scenario
	line, column int
}

// load reads, decodes and checks the files that were found.
func (f *finder) load() ([]Scenario, error) {
	results := make([]loaded, len(f.files))
	structs := newAllStructs()
	var files errgroup.Group
	files.SetLimit(runtime.GOMAXPROCS(0))
	for i := range f.files {
		files.Go(func() error {
			results[i] = f.files[i].load(structs, f.options)
			return nil
		})
	}
	_ = files.Wait() // no function returns an error

	problems := f.errors
	rank := make(map[string]int, len(f.files))
	var all []located
	for i, result := range results {
		rank[f.files[i].name] = i + 1 // 0 is the rank of paths that cannot be opened
		if result.passedOver != "" && f.options.PassedOver != nil {
			f.options.PassedOver(fmt.Sprintf("passed over %s: %s", f.files[i].name, result.passedOver))
		}
		problems = append(problems, result.errors...)
		all = append(all, result.scenarios...)
	}
	problems = append(problems, duplicates(all)...)
	if len(problems) > 0 {
		return nil, join(problems, rank)
	}
	scenarios := make([]Scenario, len(all))
	for i := range all {
		scenarios[i] = all[i].Scenario
	}
	slices.SortFunc(scenarios, func(a, b Scenario) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return scenarios, nil
}

// duplicates reports each scenario with the name of an earlier one.
func duplicates(all []located) []*Error {
	var problems []*Error
	first := make(map[string]located, len(all))
	for _, one := range all {
		name := one.Metadata.Name
		if name == "" {
			continue
		}
		if earlier, twice := first[name]; twice {
			problems = append(problems, &Error{
				one.File, one.line, one.column,
				fmt.Sprintf("another scenario has the name %s; expected a unique name", strictyaml.Quote(name)),
				fmt.Sprintf("the other is at %s:%d:%d: rename one", earlier.File, earlier.line, earlier.column),
			})
			continue
		}
		first[name] = one
	}
	return problems
}

// load reads, decodes and checks one file.
func (f *file) load(structs allStructs, options LoadOptions) loaded {
	content, problem := f.read()
	if problem != nil {
		if why := f.foreign(f.beginning(), nil); why != "" {
			return loaded{passedOver: why}
		}
		return loaded{errors: []*Error{problem}}
	}
	documents, problems := parseFile(f.name, content)
	if why := f.foreign(content, documents); why != "" {
		return loaded{passedOver: why}
	}
	result := loaded{errors: problems}
	for i, root := range documents {
		if root.Text("kind") == kindUncovered && root.Text("apiVersion") == APIVersion {
			continue
		}
		if root.Text("kind") == KindPolicyTest {
			cases, problems := decodePolicyTest(f, root, i, structs)
			for k := range cases {
				cases[k].File, cases[k].Area = f.name, f.area
			}
			result.errors = append(result.errors, problems...)
			result.scenarios = append(result.scenarios, cases...)
			continue
		}
		one, problems := decodeDocument(f, root, structs, options)
		one.File, one.Area = f.name, f.area
		result.errors = append(result.errors, problems...)
		result.scenarios = append(result.scenarios, one)
	}
	result.errors = atMost(maxErrors, result.errors)
	return result
}

// parseFile returns the documents of a file, without empty ones. If a document is
// malformed, it returns those before it and the error.
func parseFile(name string, content []byte) ([]*strictyaml.Node, []*Error) {
	documents, problems := parseDocuments(name, content, strictyaml.Parse)
	if len(documents) == 0 && len(problems) == 0 {
		problems = []*Error{{name, 1, 1, "the file is empty; expected a Scenario", "write one (admissiontest schema prints its JSON Schema) or remove the file"}}
	}
	return documents, problems
}

// parseDocuments is parseFile for a file that can be empty, with strictyaml.Parse or
// strictyaml.ParsePrivate.
func parseDocuments(name string, content []byte, parse func([]byte, strictyaml.Format) ([]*strictyaml.Node, []strictyaml.Problem)) ([]*strictyaml.Node, []*Error) {
	format := strictyaml.YAML
	if strings.HasSuffix(name, ".json") {
		format = strictyaml.JSON
	}
	documents, found := parse(content, format)
	problems := make([]*Error, len(found))
	for i, one := range found {
		problems[i] = &Error{name, one.Line, one.Column, one.Message, one.Hint}
	}
	return documents, problems
}

// maxErrors is the largest number of errors that are reported for a file.
const maxErrors = 100

// atMost returns the first n errors of a file and, if there are more, one that says
// how many.
func atMost(n int, problems []*Error) []*Error {
	if len(problems) <= n {
		return problems
	}
	slices.SortStableFunc(problems, (*Error).compare)
	last := problems[n-1]
	return append(problems[:n:n], &Error{
		last.File, last.Line, last.Column,
		fmt.Sprintf("and %d more errors; expected a file of scenarios", len(problems)-n), "fix those above first",
	})
}

// decodeDocument returns the scenario of a document. With errors, it contains what
// could be decoded.
func decodeDocument(from *file, root *strictyaml.Node, structs allStructs, options LoadOptions) (located, []*Error) {
	var one located
	if root.Kind != strictyaml.KindMapping {
		return one, []*Error{{
			from.name, root.Line, root.Column,
			fmt.Sprintf("the document is %s; expected a Scenario", root.Describe()),
			"begin with apiVersion: " + APIVersion,
		}}
	}
	c := &checker{decoder: decoder{file: from.name, structs: structs}, ids: map[string]int{}, services: map[string]string{}, inSteps: map[*strictyaml.Node]string{}, options: options}
	c.stepFiles(from, root.Get("spec").Get("when"), specPlace().field("when"))
	c.structure(root, reflect.ValueOf(&one.Scenario).Elem(), nil)
	c.givenFiles(from, root.Get("spec"))
	c.check(root)
	one.Spec.Given = append(c.fromFiles(), one.Spec.Given...)
	one.origin = &origin{root: root, files: c.files, stepFiles: c.inSteps}
	one.line, one.column = root.Line, root.Column
	if name := root.Get("metadata").Get("name"); name != nil {
		one.line, one.column = name.Line, name.Column
	}
	one.Line = one.line
	for _, step := range root.Get("spec").List("when") {
		one.Lines = append(one.Lines, step.Line)
	}
	return one, c.errors
}
