package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	generate "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

// schemaFile is the JSON Schema that docs/reports.md promises.
const schemaFile = "schemas/report.json"

// The schema in docs describes the Go types. Keys that a later version adds are valid.
func TestSchemaIsCurrent(t *testing.T) {
	reflector := generate.Reflector{AllowAdditionalProperties: true, Mapper: enums}
	t.Chdir("..") // the comments are found by the folders of the packages
	for _, dir := range []string{"./internal/report", "./framework"} {
		if err := reflector.AddGoComments("github.com/admissiontest/admissiontest", dir, generate.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	for key, comment := range reflector.CommentMap {
		reflector.CommentMap[key] = strings.ReplaceAll(comment, "\n", " ")
	}
	schema := reflector.Reflect(report.Report{})
	fields := schema.Definitions["Report"].Properties
	fields.Value("apiVersion").Const, fields.Value("kind").Const = report.APIVersion, report.Kind
	schema.ID = "https://admissiontest.dev/schemas/v1alpha1/report.json"
	schema.Title = "admissiontest report"
	document, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "docs/"+schemaFile, string(document)+"\n")
}

// enums returns the schema of a type that has few values, or nil. An outcome without a verdict has an empty one.
func enums(typ reflect.Type) *generate.Schema {
	var values []any
	switch typ {
	case reflect.TypeFor[framework.Level]():
		values = []any{framework.Must, framework.Should, framework.May}
	case reflect.TypeFor[framework.Verdict]():
		values = []any{""}
		for _, verdict := range framework.Verdicts() {
			values = append(values, verdict)
		}
	default:
		return nil
	}
	return &generate.Schema{Type: "string", Enum: values}
}

// compiled returns the schema in docs.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// The reports of this version and of earlier ones are valid.
func TestSchemaOfReports(t *testing.T) {
	schema := compiled(t)
	files, err := filepath.Glob("../internal/report/testdata/versions/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v; want at least 2 files", files, err)
	}
	for _, file := range append(files, "../internal/report/testdata/report.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			document, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := valid(schema, document); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is no report is invalid.
func TestSchemaRefuses(t *testing.T) {
	schema := compiled(t)
	written, err := os.ReadFile("../internal/report/testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]any){
		"no outcomes":       func(r map[string]any) { delete(r, "outcomes") },
		"text for a number": func(r map[string]any) { r["foreignRequests"] = "2" },
		"unknown verdict":   func(r map[string]any) { r["outcomes"].([]any)[0].(map[string]any)["verdict"] = "passed" },
		"another kind":      func(r map[string]any) { r["kind"] = "Scenario" },
	} {
		t.Run(name, func(t *testing.T) {
			var r map[string]any
			if err := json.Unmarshal(written, &r); err != nil {
				t.Fatal(err)
			}
			change(r)
			document, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := valid(schema, document); err == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// valid returns why a document is not valid.
func valid(schema *jsonschema.Schema, document []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return schema.Validate(value)
}

// An editor finds the schema that an example names, and the example is valid by it.
func TestExamplesNameTheirSchema(t *testing.T) {
	files, err := filepath.Glob("../examples/*/scenarios/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %v, %v; want at least 10 files", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(text), "\n")
		name, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if !ok {
			t.Errorf("%s begins with %q; want a comment for yaml-language-server", file, first)
			continue
		}
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(filepath.Dir(file), name))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, document := range strings.Split(rest, "\n---\n") {
			converted, err := yaml.YAMLToJSON([]byte(document))
			if err == nil {
				err = valid(schema, converted)
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
