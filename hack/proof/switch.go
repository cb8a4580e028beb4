package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// One kube-apiserver has all mutants: each function with mutants has a copy for each of them, and calls the
// copy of the mutant that is selected. The number of that mutant is in the file selectedFile beside the
// program, which reads it when it starts; without that file it runs unchanged.

const (
	// The package in switchFolder has the number of the selected mutant. It is written into the copy of
	// switchModule.
	switchModule, switchFolder = "k8s.io/apiserver", "pkg/selectedmutant"
	selectedFile               = "mutant"
)

const switchText = `// Package selectedmutant says which mutant runs.
package selectedmutant

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Number is the number of the mutant, or 0.
var Number = read()

func read() int {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(program), "` + selectedFile + `"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	number, wrong := strconv.Atoi(string(text))
	if err := errors.Join(err, wrong); err != nil {
		panic(err)
	}
	return number
}
`

// writeSwitch writes the package that the copies of functions need into the folder of switchModule.
func writeSwitch(folder string) error {
	to := filepath.Join(folder, filepath.FromSlash(switchFolder))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "selected.go"), []byte(switchText), 0o600)
}

// selectMutant selects the mutant with which the kube-apiserver of a folder runs from its next
// start. Number 0 means the unchanged server.
func selectMutant(server string, number int) error {
	return os.WriteFile(filepath.Join(server, selectedFile), []byte(strconv.Itoa(number)), 0o600)
}

// compilerLine is the place of a compiler's message about the copy of a function, see addCopies.
var compilerLine = regexp.MustCompile(`\bmutant(\d+)\.go:\d+`)

// notCompiled returns the numbers of the mutants that a compiler's messages are about.
func notCompiled(messages string) []int {
	var numbers []int
	for _, found := range compilerLine.FindAllStringSubmatch(messages, -1) {
		if number, err := strconv.Atoi(found[1]); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// edit replaces a part of a file.
type edit struct {
	from, to int
	text     string
}

// edited returns a string with edits that do not overlap.
func edited(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(text[at:])
	return out.Bytes()
}

// addCopies returns the file with a copy of the changed function for each mutant. The lines of the
// original keep their numbers. The copies are at the end. A line directive makes the compiler
// report errors in a copy as errors in mutantNUMBER.go.
func addCopies(name string, text []byte, mutants map[int]mutant) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse the source: %w", err)
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	begin := offset(file.Name.End())
	edits := []edit{{begin, begin, fmt.Sprintf("; import %q", switchModule+"/"+switchFolder)}}
	var copies bytes.Buffer
	left := maps.Clone(mutants)
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		c := &copied{text: text, function: f, offset: offset}
		for _, number := range slices.Sorted(maps.Keys(left)) {
			if m := left[number]; offset(f.Body.Lbrace) < m.offset && m.offset < offset(f.Body.Rbrace) {
				_, _ = fmt.Fprintf(&copies, "\n//line mutant%d.go:%d\n%s\n", number, files.Position(f.Pos()).Line, c.copy(number, m))
				c.numbers = append(c.numbers, number)
				delete(left, number)
			}
		}
		edits = append(edits, c.edits()...)
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%s: mutants %v are in no function", name, slices.Sorted(maps.Keys(left)))
	}
	return append(edited(text, edits), copies.Bytes()...), nil
}

// copied is a function with copies.
type copied struct {
	text     []byte
	function *ast.FuncDecl
	offset   func(token.Pos) int
	numbers  []int
}

func (c *copied) name(number int) string {
	return fmt.Sprintf("mutant%d_%s", number, c.function.Name.Name)
}

// copy returns the function under another name, with a mutant's change.
func (c *copied) copy(number int, m mutant) []byte {
	begin := c.offset(c.function.Pos())
	return edited(c.text[begin:c.offset(c.function.End())], []edit{
		{c.offset(c.function.Name.Pos()) - begin, c.offset(c.function.Name.End()) - begin, c.name(number)},
		{m.offset - begin, m.offset - begin + len(m.Before), m.After},
	})
}

// edits returns what makes the function call its copies.
func (c *copied) edits() []edit {
	if len(c.numbers) == 0 {
		return nil
	}
	f := c.function
	var edits []edit
	receiver := ""
	if f.Recv != nil {
		names, change := c.named(f.Recv, "mutatedReceiver")
		receiver, edits = names[0]+".", append(edits, change...)
	}
	arguments, change := c.named(f.Type.Params, "mutatedParameter")
	edits = append(edits, change...)
	var types string
	if f.Type.TypeParams != nil {
		names, _ := c.named(f.Type.TypeParams, "")
		types = "[" + strings.Join(names, ", ") + "]"
	}
	var calls strings.Builder
	for _, number := range c.numbers {
		call := receiver + c.name(number) + types + "(" + strings.Join(arguments, ", ") + ")"
		if f.Type.Results == nil {
			call += "; return"
		} else {
			call = "return " + call
		}
		_, _ = fmt.Fprintf(&calls, " case %d: %s;", number, call)
	}
	at := c.offset(f.Body.Lbrace) + 1
	return append(edits, edit{at, at, " switch selectedmutant.Number {" + calls.String() + " };"})
}

// named returns the names of parameters as arguments of a call, and edits that give names to
// unnamed parameters.
func (c *copied) named(list *ast.FieldList, prefix string) (names []string, edits []edit) {
	for _, field := range list.List {
		end := ""
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			end = "..."
		}
		if len(field.Names) == 0 {
			name := prefix + strconv.Itoa(len(names))
			at := c.offset(field.Type.Pos())
			names, edits = append(names, name+end), append(edits, edit{at, at, name + " "})
		}
		for _, ident := range field.Names {
			name := ident.Name
			if name == "_" {
				name = prefix + strconv.Itoa(len(names))
				edits = append(edits, edit{c.offset(ident.Pos()), c.offset(ident.End()), name})
			}
			names = append(names, name+end)
		}
	}
	return names, edits
}
