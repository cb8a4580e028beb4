package scenario

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/golden"
)

// TestSchemaIsCurrent compares schema.json with the Go types and their documentation; with -update it writes it.
func TestSchemaIsCurrent(t *testing.T) {
	golden.Compare(t, "schema.json", generated(t))
}

// generated returns the JSON Schema of the Go types, with what they do not say.
func generated(t *testing.T) string {
	comments := map[string]string{}
	for dir, path := range map[string]string{
		"..":                        "github.com/admissiontest/admissiontest/framework",
		".":                         "github.com/admissiontest/admissiontest/framework/scenario",
		filepath.Join("..", "hook"): "github.com/admissiontest/admissiontest/framework/hook",
	} {
		readComments(t, dir, path, comments)
	}
	reflector := jsonschema.Reflector{Mapper: mapped, CommentMap: comments}
	schema := reflector.ReflectFromType(reflect.TypeFor[Scenario]())
	table := reflector.ReflectFromType(reflect.TypeFor[PolicyTest]())
	maps.Copy(schema.Definitions, table.Definitions)
	isTable := jsonschema.NewProperties()
	isTable.Set("kind", &jsonschema.Schema{Const: KindPolicyTest})
	schema.If = &jsonschema.Schema{Properties: isTable, Required: []string{"kind"}}
	schema.Then = &jsonschema.Schema{Ref: table.Ref}
	schema.Else = &jsonschema.Schema{Ref: schema.Ref}
	schema.Ref = ""
	schema.ID = "https://admissiontest.dev/schemas/v1alpha1/scenario.json"
	schema.Title = "admissiontest scenario"
	refine(refinement{t, schema.Definitions})
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// mapped returns the schema of a type that is not written as its Go type suggests, or nil.
func mapped(typ reflect.Type) *jsonschema.Schema {
	switch typ {
	case reflect.TypeFor[int]():
		return integer()
	case reflect.TypeFor[OneOrMore[string]]():
		return oneOrMore(&jsonschema.Schema{Type: "string"})
	case reflect.TypeFor[OneOrMore[int]]():
		return oneOrMore(integer())
	case reflect.TypeFor[Manifests]():
		one := []*jsonschema.Schema{{Type: "string"}, {Type: "object"}}
		many := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{OneOf: one}}
		notEmpty(many)
		return &jsonschema.Schema{OneOf: append(one, many)}
	case reflect.TypeFor[hook.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: duration, Examples: []any{"150ms"}}
	case reflect.TypeFor[hook.Fault]():
		return &jsonschema.Schema{Type: "string", Enum: enumOf(hook.Faults()...)}
	default:
		return nil
	}
}

func integer() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: "-2147483648", Maximum: "2147483647"}
}

func oneOrMore(of *jsonschema.Schema) *jsonschema.Schema {
	one, many := *of, *of
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{&one, {Type: "array", Items: &many}}}
}

func enumOf[T any](values ...T) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value
	}
	return all
}

// refinement adds to the schema what the Go types do not say.
type refinement struct {
	t           *testing.T
	definitions jsonschema.Definitions
}

// field returns the schema of a field, "Spec.level".
func (r refinement) field(name string) *jsonschema.Schema {
	in, field, _ := strings.Cut(name, ".")
	if r.definitions[in] != nil {
		if found, ok := r.definitions[in].Properties.Get(field); ok {
			return found
		}
	}
	r.t.Fatalf("no field %s", name)
	return nil
}

// each does something with the schemas of fields.
func (r refinement) each(do func(*jsonschema.Schema), fields ...string) {
	for _, name := range fields {
		do(r.field(name))
	}
}

func enum(values ...any) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Enum = values }
}

func pattern(text string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Pattern = text }
}

func constant(value any) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Const = value }
}

// notEmpty refuses an empty list or map.
func notEmpty(s *jsonschema.Schema) {
	one := uint64(1)
	switch s.Type {
	case "array":
		s.MinItems = &one
	case "object":
		s.MinProperties = &one
	}
	for _, other := range s.OneOf {
		notEmpty(other)
	}
}

// someText refuses an empty string, also in a list.
func someText(s *jsonschema.Schema) {
	if one := uint64(1); s.Type == "string" {
		s.MinLength = &one
	} else if s.Items != nil {
		someText(s.Items)
	}
	for _, other := range s.OneOf {
		someText(other)
	}
}

func refine(r refinement) {
	r.each(constant(APIVersion), "Scenario.apiVersion", "PolicyTest.apiVersion")
	r.each(enum(Kind, KindPolicyTest), "Scenario.kind")
	r.each(enum(KindPolicyTest), "PolicyTest.kind")
	r.each(pattern(scenarioName), "Metadata.name")
	r.each(pattern(testName), "PolicyTestMetadata.name")
	r.each(pattern(namespaceName), "Namespace.name")
	r.each(pattern(minorVersion), "Spec.since", "Spec.until")
	r.each(pattern(notBlank), "Spec.requirement")
	r.each(pattern(someWord), "PolicyCase.name")
	r.each(pattern(stepName), "Step.id")
	r.each(pattern(day), "ContractException.until")
	r.each(enum(enumOf(framework.Levels()...)...), "Spec.level")
	r.each(constant(string(IsolationNone)), "Spec.isolation", "PolicyTest.isolation")
	r.each(enum(framework.Mutating, framework.Validating), "Call.phase", "PluginCall.phase")
	r.each(enum(operationCreate, operationUpdate, operationDelete), "PolicyCase.operation")
	r.each(enum(hook.HTTP500, hook.Hang, hook.Reset, hook.Empty, hook.NotJSON, hook.Refused), "Conversion.fault")
	r.each(constant(true), "Expectation.serial", "Expectation.answeredLast")
	r.each(notEmpty, "Spec.source", "Hook.replies", "Wait.object", "PolicyTest.cases",
		"Expectation.code", "Expectation.reason", "Expectation.message", "Expectation.details", "Expectation.object", "Expectation.audit", "Expectation.distinct", "Expectation.overlapping",
		"RefusedBy.policy", "Denied.message", "Calls.include", "Calls.exclude", "Plugins.exclude",
		"Call.review", "Call.request", "Call.query", "Call.header", "Call.response", "Files.write", "Files.remove")
	r.each(someText, "Server.fails", "Expectation.message", "RefusedBy.validation", "RefusedBy.error", "Denied.message", "Denied.error")
	for _, name := range []string{"Expectation", "Files", "Calls", "Plugins"} {
		notEmpty(r.definitions[name])
	}
	r.field("Spec.source").Items.Pattern = notBlank
	r.field("Spec.needs").Items.AnyOf = []*jsonschema.Schema{{Enum: enumOf(framework.Capabilities()...)}, {Pattern: pluginNeed}}
	r.field("Expectation.warnings").OneOf = []*jsonschema.Schema{{Type: "array"}, {Type: "object"}}
	r.field("PluginCall.refused").OneOf = []*jsonschema.Schema{{Type: "boolean"}, {Type: "object"}}
	r.definitions["RefusedBy"].DependentRequired = map[string][]string{"binding": {"policy"}, "validation": {"policy"}}
	r.exactlyOne("Step", actions()...)
	r.exactlyOne("Patch", "json", "merge", "strategic")
	r.exactlyOne("RefusedBy", "webhook", "policy")
	for typ, short := range shorts() {
		r.shorten(typ.Name(), short)
	}
}

// exactlyOne lets a struct have exactly one of some fields.
func (r refinement) exactlyOne(in string, names ...string) {
	for _, name := range names {
		r.field(in + "." + name)
		r.definitions[in].OneOf = append(r.definitions[in].OneOf, &jsonschema.Schema{Required: []string{name}})
	}
}

// shorten adds the short form of a struct: the value of a field. That of Denied is also true.
func (r refinement) shorten(name, field string) {
	long, value := r.definitions[name], r.field(name+"."+field)
	short := []*jsonschema.Schema{{Type: value.Type, Items: value.Items}}
	if name == "Denied" {
		short = append([]*jsonschema.Schema{{Type: "boolean", Const: true}}, value.OneOf...)
	}
	r.definitions[name] = &jsonschema.Schema{OneOf: append(short, long), Description: long.Description}
}

// readComments reads the doc comments of the structs of a package.
func readComments(t *testing.T, dir, path string, into map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				typ := spec.(*ast.TypeSpec)
				structure, ok := typ.Type.(*ast.StructType)
				if !ok {
					continue
				}
				into[path+"."+typ.Name.Name] = oneParagraph(general.Doc.Text())
				fieldComments(structure, set, path+"."+typ.Name.Name, into)
			}
		}
	}
}

// fieldComments reads the comments of the fields of a struct. A comment that names several
// fields is for each of those that follow it without a blank line.
func fieldComments(structure *ast.StructType, set *token.FileSet, prefix string, into map[string]string) {
	var shared string
	var end int
	for _, member := range structure.Fields.List {
		own := oneParagraph(member.Doc.Text())
		if own == "" {
			own = oneParagraph(member.Comment.Text())
		}
		if own != "" {
			shared = own
		} else if set.Position(member.Pos()).Line > end+1 {
			shared = ""
		}
		end = set.Position(member.End()).Line
		for _, name := range member.Names {
			text := own
			if text == "" && regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(shared) {
				text = shared
			}
			if text != "" {
				into[prefix+"."+name.Name] = text
			}
		}
	}
}

// oneParagraph joins the lines of each paragraph, because editors wrap lines.
func oneParagraph(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		if !strings.Contains(paragraph, "\n\t") && !strings.HasPrefix(paragraph, "\t") {
			paragraphs[i] = strings.ReplaceAll(paragraph, "\n", " ")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
