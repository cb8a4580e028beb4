package scenario

import (
	"cmp"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Load reads scenarios from a catalogue: from the files given and, recursively,
// from the *.yaml, *.yml and *.json files of the folders given. No path means all
// of fsys. A scenario's Area is the first folder of its path, "" for a file at the
// root.
//
// The scenarios are sorted by name. The error joins an *Error (see Errors) for
// everything that is wrong in any file; with an error there are no scenarios.
func Load(fsys fs.FS, paths ...string) ([]Scenario, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	found := &finder{seen: map[string]bool{}}
	for _, path := range paths {
		found.catalogue(fsys, path)
	}
	return found.load()
}

// LoadPaths reads scenarios from a user's files and, recursively, from the
// *.yaml, *.yml and *.json files of a user's folders, those whose names begin with
// a dot left out. A file given by its own path is read whatever it is called. A
// file that is reached twice is read once. A scenario's Area is the name of the
// folder that its file lies in.
//
// Symbolic links are followed; one that leads back to a folder it lies in is an
// error. Order and errors are those of Load. No path means no scenario.
func LoadPaths(paths ...string) ([]Scenario, error) {
	found := &finder{seen: map[string]bool{}}
	for _, path := range paths {
		found.path(path)
	}
	return found.load()
}

// loaded is what one file gave.
type loaded struct {
	scenarios []located
	errors    []*Error
}

// located is a scenario with the place of its name.
type located struct {
	Scenario
	line, column int
}

// load reads, decodes and checks the files that were found.
func (f *finder) load() ([]Scenario, error) {
	results := make([]loaded, len(f.files))
	known := newPlans()
	each(len(f.files), func(i int) { results[i] = f.files[i].load(known) })

	problems := f.errors
	rank := make(map[string]int, len(f.files))
	var all []located
	for i, result := range results {
		rank[f.files[i].name] = i + 1 // what could not be opened comes first
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

// each calls do for 0 to n-1, some of them at the same time, and waits for all.
func each(n int, do func(int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// duplicates reports each scenario whose name an earlier one has.
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
				fmt.Sprintf("a second scenario called %s; expected a name of its own", shown(name)),
				fmt.Sprintf("the first is at %s:%d:%d: rename one", earlier.File, earlier.line, earlier.column),
			})
			continue
		}
		first[name] = one
	}
	return problems
}

// load reads, decodes and checks one file.
func (f *file) load(known plans) loaded {
	content, problem := f.read()
	if problem != nil {
		return loaded{errors: []*Error{problem}}
	}
	documents, problems := parseFile(f.name, content)
	result := loaded{errors: problems}
	for _, root := range documents {
		if root.text("kind") == KindUncovered && root.text("apiVersion") == APIVersion {
			continue
		}
		one, problems := decodeDocument(f, root, known)
		one.File, one.Area = f.name, f.area
		result.errors = append(result.errors, problems...)
		result.scenarios = append(result.scenarios, one)
	}
	result.errors = atMost(maxErrors, result.errors)
	return result
}

// maxErrors of one file are reported.
const maxErrors = 100

// atMost returns the first errors of a file and, where there are more, one that
// says how many.
func atMost(n int, problems []*Error) []*Error {
	if len(problems) <= n {
		return problems
	}
	slices.SortStableFunc(problems, (*Error).compare)
	last := problems[n-1]
	return append(problems[:n:n], &Error{
		last.File, last.Line, last.Column,
		fmt.Sprintf("and %d errors more; expected a file of scenarios", len(problems)-n), "mend those above first",
	})
}

// decodeDocument makes a scenario of a document. Where there are errors, it holds
// what could be decoded.
func decodeDocument(from *file, root *node, known plans) (located, []*Error) {
	var one located
	if root.kind != kindMapping {
		return one, []*Error{{
			from.name, root.line, root.column,
			fmt.Sprintf("the document is %s; expected a Scenario", root.describe()),
			"begin with apiVersion: " + APIVersion,
		}}
	}
	c := &checker{decoder: decoder{file: from.name, plans: known}, ids: map[string]int{}, ours: map[string]bool{}, elsewhere: map[string]string{}}
	c.document(root, &one.Scenario)
	c.givenFiles(from, root.get("spec"))
	c.check(root)
	one.Spec.Given = append(c.fromFiles(), one.Spec.Given...)
	one.line, one.column = root.line, root.column
	if name := root.get("metadata").get("name"); name != nil {
		one.line, one.column = name.line, name.column
	}
	for _, step := range root.get("spec").list("when") {
		one.Lines = append(one.Lines, step.line)
	}
	return one, c.errors
}
