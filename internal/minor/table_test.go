package minor_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/minor"
	"github.com/google/go-cmp/cmp"
)

// sourceDirs are the packages of k8s.io/apiserver that declare Wants interfaces.
func sourceDirs() []string {
	return []string{"pkg/admission/initializer", "pkg/admission/plugin/webhook/initializer"}
}

// TestTableIsThatOfKubernetes reads the source of the apiserver compiled against: every Wants
// interface is in the table as it is declared, and the table has none that the minor's
// source should have and has not.
func TestTableIsThatOfKubernetes(t *testing.T) {
	version, root := apiserver(t)
	declared := map[string]minor.Wants{}
	for _, dir := range sourceDirs() {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, wants := range declarations(source, "k8s.io/apiserver/"+dir) {
				declared[wants.Interface] = wants
			}
		}
	}
	if len(declared) < 12 {
		t.Fatalf("found only %d interfaces: this test reads the source in a way that no longer holds", len(declared))
	}
	if found := differences(declared, version); len(found) > 0 {
		t.Errorf("the table is not that of k8s.io/apiserver 0.%d:\n%s", version, strings.Join(found, "\n"))
	}
}

// differences compares the table with what a minor declares.
func differences(declared map[string]minor.Wants, version int) []string {
	var found []string
	known := map[string]bool{}
	for _, wants := range append(minor.Table(), minor.NeverInjected()...) {
		known[wants.Interface] = true
		since, _ := strconv.Atoi(strings.TrimPrefix(wants.Since, "0."))
		original, ok := declared[wants.Interface]
		original.Since = wants.Since
		switch {
		case !ok && since <= version:
			found = append(found, wants.Interface+" is not declared")
		case ok && since > version:
			found = append(found, wants.Interface+" is declared already, the table says since "+wants.Since)
		case ok && original != wants:
			found = append(found, cmp.Diff(original, wants))
		}
	}
	for name := range declared {
		if !known[name] {
			found = append(found, name+" is not in the table")
		}
	}
	slices.Sort(found)
	return found
}

// apiserver returns the minor and the folder of the k8s.io/apiserver that this test is
// compiled with. It runs the go command, which uses -modfile only if it is in GOFLAGS.
func apiserver(t *testing.T) (int, string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "k8s.io/apiserver").Output()
	if err != nil {
		t.Fatalf("find k8s.io/apiserver: %v", err)
	}
	version, root, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	var number int
	if _, err := fmt.Sscanf(version, "v0.%d.", &number); err != nil {
		t.Fatalf("version %q of k8s.io/apiserver: %v", version, err)
	}
	return number, root
}

// declarations returns the Wants interfaces that a file declares.
func declarations(file *ast.File, own string) []minor.Wants {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		local := path.Base(name)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imports[local] = name
	}
	var found []minor.Wants
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || !strings.HasPrefix(spec.Name.Name, "Wants") {
			return true
		}
		wants := minor.Wants{Interface: spec.Name.Name}
		for _, method := range spec.Type.(*ast.InterfaceType).Methods.List {
			function, ok := method.Type.(*ast.FuncType)
			if !ok {
				wants.Validates = typeName(method.Type, imports, own) == "k8s.io/apiserver/pkg/admission.InitializationValidator"
				continue
			}
			wants.Method = method.Names[0].Name
			wants.Param = typeName(function.Params.List[0].Type, imports, own)
		}
		found = append(found, wants)
		return true
	})
	return found
}

// typeName writes a type as minor.Name does.
func typeName(expression ast.Expr, imports map[string]string, own string) string {
	switch e := expression.(type) {
	case *ast.Ident:
		if ast.IsExported(e.Name) {
			return own + "." + e.Name
		}
		return e.Name
	case *ast.SelectorExpr:
		return imports[e.X.(*ast.Ident).Name] + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + typeName(e.X, imports, own)
	case *ast.ArrayType:
		return "[]" + typeName(e.Elt, imports, own)
	case *ast.ChanType:
		return "<-chan " + typeName(e.Value, imports, own)
	case *ast.StructType:
		return "struct {}"
	}
	return fmt.Sprintf("%T", expression)
}
