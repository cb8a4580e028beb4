package framework_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shownByTest has the public packages whose example is a test of the user. A function Example
// has no *testing.T: the named test runs what it shows.
func shownByTest() map[string]string {
	return map[string]string{"suites/conformance": "TestExample", "suites/conformance/ginkgo": "TestExample"}
}

// problemsOf returns what a public package lacks, in its folder and in the files of its tests.
func problemsOf(name string, files []*ast.File) []string {
	var problems []string
	comment, tests := "", map[string]bool{}
	for _, file := range files {
		if file.Doc != nil {
			comment += file.Doc.Text()
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
				tests[function.Name.Name] = true
			}
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(comment), " "), "is public ") {
		problems = append(problems, "its doc does not say why it is public")
	}
	examples := doc.Examples(files...)
	switch test := shownByTest()[name]; {
	case len(examples) == 0:
		problems = append(problems, "it has no Example")
	case test != "" && !tests[test]:
		problems = append(problems, "it has no "+test+", which runs its Example")
	case test == "" && !slices.ContainsFunc(examples, func(e *doc.Example) bool { return e.Output != "" }):
		problems = append(problems, "no Example has an Output, so none runs")
	}
	return problems
}

// Each package that users can import is a public one, says why, and has an example that runs.
func TestPublicPackages(t *testing.T) {
	var importable []string
	for line := range strings.Lines(goList(t, "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, module+"/...")) {
		name, ours := strings.CutPrefix(strings.TrimSpace(line), module+"/")
		if ours && !slices.Contains(strings.Split(name, "/"), "internal") && name != "docs" && !strings.HasPrefix(name, "hack/") {
			importable = append(importable, name)
		}
	}
	slices.Sort(importable)
	if want := slices.Sorted(slices.Values(publicPackages())); !slices.Equal(importable, want) {
		t.Errorf("users can import %q, want the publicPackages %q: what no repository of users imports is internal", importable, want)
	}
	for _, name := range publicPackages() {
		for _, problem := range problemsOf(name, filesOf(t, filepath.Join("..", name))) {
			t.Errorf("package %s: %s", name, problem)
		}
	}
}

// filesOf parses the Go files of a folder, tests included.
func filesOf(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	set := token.NewFileSet()
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// The check notices a package without a reason, without an example, and with one that does not run.
func TestProblemsOfPublicPackages(t *testing.T) {
	for source, want := range map[string]string{
		"// Package a is a.\npackage a\nfunc Example() {\n\t// Output: x\n}":                                     "its doc does not say why it is public",
		"// Package a is public for users.\npackage a":                                                           "it has no Example",
		"// Package a is public for users.\npackage a\nfunc Example() { println() }":                             "no Example has an Output, so none runs",
		"// Package a is\n// public for users.\npackage a\nfunc Example() {\n\t// Output: x\n}":                  "",
		"// Package conformance is public for x.\npackage conformance\nfunc Example() {}":                        "it has no TestExample, which runs its Example",
		"// Package conformance is public for x.\npackage conformance\nfunc Example() {}\nfunc TestExample() {}": "",
	} {
		t.Run(source, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			name := file.Name.Name
			if name == "conformance" {
				name = "suites/conformance"
			}
			if got := strings.Join(problemsOf(name, []*ast.File{file}), "; "); got != want {
				t.Errorf("%q: got %q, want %q", source, got, want)
			}
		})
	}
}
