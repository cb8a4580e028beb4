package framework_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/api.txt")

// publicPackages are the packages that users can import. The doc of each says why.
func publicPackages() []string {
	return []string{
		"fakes", "fakes/effectiveversion",
		"framework", "framework/envtest", "framework/harness", "framework/hook", "framework/kind",
		"framework/matchers", "framework/reach", "framework/ready", "framework/scenario",
		"scenarios",
		"suites/conformance", "suites/conformance/ginkgo", "suites/contract", "suites/contract/specs", "suites/policy", "suites/webhook",
	}
}

// withInternalTypes has the parts of the API that have types of internal packages, and why.
func withInternalTypes() map[string]string {
	return map[string]string{
		"suites/conformance: method (Options) Plan": "only suites/conformance/ginkgo calls it",
		"suites/contract: type Option":              "functions of the package make an Option",
		"suites/policy: type Option":                "functions of the package make an Option",
		"suites/webhook: type Option":               "functions of the package make an Option",
	}
}

// TestPublicAPI fails if docs/api.txt is not the public API: each change of it is a change of this file, which a
// reviewer sees. `go test ./framework -run TestPublicAPI -update` writes it.
func TestPublicAPI(t *testing.T) {
	var lines []string
	for _, p := range loaded(t) {
		lines = append(lines, apiOf(p)...)
	}
	got, file := strings.Join(lines, "\n")+"\n", filepath.Join("..", "docs", "api.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/api.txt is not the public API; if the change is wanted, run go test ./framework -run TestPublicAPI -update: -want +got\n%s", diff)
	}
}

// TestNoInternalTypes fails if the public API has a type of an internal package that it does not re-export.
func TestNoInternalTypes(t *testing.T) {
	has := map[string]bool{}
	for _, found := range internalTypes(loaded(t)) {
		what, _, _ := strings.Cut(found, " has ")
		if has[what] = true; withInternalTypes()[what] == "" {
			t.Error(found)
		}
	}
	for what := range withInternalTypes() {
		if !has[what] {
			t.Errorf("no internal type is found in %s: remove it from withInternalTypes", what)
		}
	}
}

// Each struct of an internal package that a public one re-exports has its fields in the doc of the public one: go doc
// does not show them.
func TestReexportedStructsAreDocumented(t *testing.T) {
	checked := 0
	for _, p := range loaded(t) {
		docs := docsOf(filesOf(t, filepath.Join("..", nameOf(p))))
		for _, name := range p.Scope().Names() {
			structure, ok := reexported(p.Scope().Lookup(name))
			if !ok {
				continue
			}
			checked++
			for i := range structure.NumFields() {
				if field := structure.Field(i); field.Exported() && !strings.Contains(docs[name], field.Name()) {
					t.Errorf("the doc of %s.%s has no field %s", nameOf(p), name, field.Name())
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no re-exported struct is found")
	}
}

// reexported returns the struct of an internal package for which an exported name is an alias.
func reexported(object types.Object) (*types.Struct, bool) {
	name, ok := object.(*types.TypeName)
	if !ok || !name.Exported() || !name.IsAlias() {
		return nil, false
	}
	named, ok := types.Unalias(name.Type()).(*types.Named)
	if !ok || !isInternal(named.Obj()) {
		return nil, false
	}
	structure, ok := named.Underlying().(*types.Struct)
	return structure, ok
}

// docsOf returns the docs of types by name.
func docsOf(files []*ast.File) map[string]string {
	docs := map[string]string{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					docs[spec.Name.Name] = general.Doc.Text() + spec.Doc.Text()
				}
			}
		}
	}
	return docs
}

// loaded returns the public packages with their types.
func loaded(t *testing.T) []*types.Package {
	t.Helper()
	arguments := []string{"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, name := range publicPackages() {
		arguments = append(arguments, module+"/"+name)
	}
	exports := map[string]string{}
	for line := range strings.Lines(goList(t, arguments...)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []*types.Package
	for _, name := range publicPackages() {
		p, err := from.Import(module + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// nameOf returns the path of a package in this module, or that of another one.
func nameOf(p *types.Package) string { return strings.TrimPrefix(p.Path(), module+"/") }

// apiOf returns a sorted line for each exported name, field and method of a package.
func apiOf(p *types.Package) []string {
	within := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return nameOf(other)
	}
	var lines []string
	add := func(format string, arguments ...any) {
		lines = append(lines, nameOf(p)+": "+fmt.Sprintf(format, arguments...))
	}
	for _, name := range p.Scope().Names() {
		switch object := p.Scope().Lookup(name).(type) {
		case *types.Const:
			if object.Exported() {
				add("%s = %s", types.ObjectString(object, within), object.Val())
			}
		case *types.TypeName:
			if object.Exported() {
				typeAPI(object, within, add)
			}
		default:
			if object.Exported() {
				add("%s", types.ObjectString(object, within))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// typeAPI adds the lines of an exported type. What a type of an internal package has is written for its alias.
func typeAPI(object *types.TypeName, within types.Qualifier, add func(string, ...any)) {
	name, shown := object.Name(), types.TypeString(object.Type().Underlying(), within)
	own := !object.IsAlias()
	if named, ok := types.Unalias(object.Type()).(*types.Named); ok && object.IsAlias() {
		add("type %s = %s", name, types.TypeString(named, within))
		own = isInternal(named.Obj())
	}
	if !own {
		return
	}
	switch underlying := object.Type().Underlying().(type) {
	case *types.Struct:
		add("type %s struct", name)
		for i := range underlying.NumFields() {
			if field := underlying.Field(i); field.Exported() {
				add("field %s.%s %s", name, field.Name(), types.TypeString(field.Type(), within))
			}
		}
	case *types.Interface:
		add("type %s interface", name)
		for i := range underlying.NumMethods() {
			method := underlying.Method(i)
			add("method (%s) %s%s", name, method.Name(), strings.TrimPrefix(types.TypeString(method.Type(), within), "func"))
		}
	default:
		add("type %s %s", name, shown)
	}
	named, ok := types.Unalias(object.Type()).(*types.Named)
	for i := 0; ok && i < named.NumMethods(); i++ {
		if method := named.Method(i); method.Exported() {
			add("method (%s) %s%s", name, method.Name(), strings.TrimPrefix(types.TypeString(method.Type(), within), "func"))
		}
	}
}

// isInternal reports whether a type is one of an internal package of this module.
func isInternal(name *types.TypeName) bool {
	return name.Pkg() != nil && strings.HasPrefix(name.Pkg().Path(), module+"/") && slices.Contains(strings.Split(name.Pkg().Path(), "/"), "internal")
}

// internalTypes returns each part of the API of packages that has a type of an internal package for which none of them
// has an alias.
func internalTypes(all []*types.Package) []string {
	known := map[types.Object]bool{}
	for _, p := range all {
		for _, name := range p.Scope().Names() {
			if object, ok := p.Scope().Lookup(name).(*types.TypeName); ok && object.Exported() {
				if named, ok := types.Unalias(object.Type()).(*types.Named); ok {
					known[named.Obj()] = true
				}
			}
		}
	}
	var found []string
	for _, p := range all {
		for _, name := range p.Scope().Names() {
			object := p.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			parts := map[string]types.Type{types.ObjectString(object, func(*types.Package) string { return "" }): object.Type()}
			if named, ok := types.Unalias(object.Type()).(*types.Named); ok {
				parts = map[string]types.Type{"type " + name: named.Underlying()}
				for i := range named.NumMethods() {
					if method := named.Method(i); method.Exported() {
						parts["method ("+name+") "+method.Name()] = method.Signature()
					}
				}
			}
			for what, part := range parts {
				for _, internal := range internalIn(part, known) {
					found = append(found, nameOf(p)+": "+what+" has "+internal)
				}
			}
		}
	}
	return found
}

// internalIn returns the types of internal packages in a type, except those that are known.
func internalIn(of types.Type, known map[types.Object]bool) []string {
	var found []string
	add := func(parts ...types.Type) {
		for _, part := range parts {
			found = append(found, internalIn(part, known)...)
		}
	}
	switch of := of.(type) {
	case *types.Named:
		if isInternal(of.Obj()) && !known[of.Obj()] {
			found = append(found, of.String())
		}
	case *types.Alias:
		if isInternal(of.Obj()) {
			add(types.Unalias(of))
		}
	case interface{ Elem() types.Type }: // a pointer, list, array, map or channel
		add(of.Elem())
	case *types.Signature:
		add(of.Params(), of.Results())
	case *types.Tuple:
		for i := range of.Len() {
			add(of.At(i).Type())
		}
	case *types.Struct:
		for i := range of.NumFields() {
			if field := of.Field(i); field.Exported() {
				add(field.Type())
			}
		}
	case *types.Interface:
		for i := range of.NumMethods() {
			add(of.Method(i).Signature())
		}
	}
	return found
}
