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
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/golden"
)

// TestSchemaIsCurrent compares the schemas with the Go types and their documentation; with -update it writes them.
func TestSchemaIsCurrent(t *testing.T) {
	schema := generated(t)
	golden.Compare(t, "../../docs/schemas/scenario.json", written(t, schema, "scenario"))
	schema.Ref, schema.If, schema.Then, schema.Else = schema.Then.Ref, nil, nil, nil
	prune(t, schema)
	golden.Compare(t, "../../docs/schemas/policytest.json", written(t, schema, "policytest"))
}

// written returns the text of the schema of a format.
func written(t *testing.T, schema *jsonschema.Schema, format string) string {
	t.Helper()
	schema.ID = jsonschema.ID("https://admissiontest.dev/schemas/v1alpha1/" + format + ".json")
	schema.Title = "admissiontest " + format
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// prune removes definitions to which nothing refers, until each has a reference.
func prune(t *testing.T, schema *jsonschema.Schema) {
	t.Helper()
	for before := 0; before != len(schema.Definitions); {
		before = len(schema.Definitions)
		text := written(t, schema, "")
		maps.DeleteFunc(schema.Definitions, func(name string, _ *jsonschema.Schema) bool {
			return !strings.Contains(text, `"#/$defs/`+name+`"`)
		})
	}
}

// The forms of names.
const (
	words        = `[a-z0-9]+(-[a-z0-9]+)*`
	testName     = `^` + words + `(\.` + words + `)*$`
	scenarioName = `^` + words + `(\.` + words + `)+$`
	minorVersion = `^1\.(0|[1-9][0-9]{0,2})$`
	pluginNeed   = `^` + framework.PluginPrefix + `[^ /,"\\]+$`
	notBlank     = `\S`
	headerValue  = `^[^\x00-\x08\x0a-\x1f\x7f]*$`
	duration     = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
)

// shortName says what the name of a namespace is.
const shortName = "at most 40 lower-case letters, digits and hyphens, such as other; write a short name: the name on the API server is $(id)-NAME"

// requestActions are the fields of a step that send one request.
func requestActions() []string {
	return []string{"create", "update", "apply", "get", "list", "patch", "delete", "deleteCollection", "connect"}
}

// otherActions are the fields of a step that do something else. A step has exactly one of both.
func otherActions() []string {
	return []string{"parallel", "install", "remove", "script", "wait", "metrics", "files"}
}

// generated returns the JSON Schema of the Go types, with what they do not say.
func generated(t *testing.T) *jsonschema.Schema {
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
	refine(refinement{t, schema.Definitions})
	return schema
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
		return &jsonschema.Schema{Type: "string", Pattern: duration, Comments: `a duration with its unit; write "150ms" or "2s"`, Examples: []any{"150ms"}}
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

// pattern refuses strings of another form. The comment is "what was expected; what to do".
func pattern(text, comment string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Pattern, s.Comments = text, comment }
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
	r.each(pattern(scenarioName, "lower-case words separated by dots, the area first, such as reinvocation.if-needed.again"), "Metadata.name")
	r.each(pattern(testName, "lower-case words separated by dots"), "PolicyTestMetadata.name")
	r.each(pattern(namespaceName, shortName), "Namespace.name")
	r.each(pattern(minorVersion, `a Kubernetes minor version; write it as "1.36"`), "Spec.since", "Spec.until")
	r.each(pattern(notBlank, "a string that is not blank"), "Spec.requirement")
	r.each(pattern(`[A-Za-z0-9]`, "a name with letters or digits"), "PolicyCase.name")
	r.each(pattern(`^[^.()$ ]+$`, "a name without dots, spaces, $ and parentheses"), "Step.id")
	r.each(pattern(`^\d{4}-\d{2}-\d{2}$`, "a day, such as 2027-01-31; write YYYY-MM-DD"), "ContractException.until")
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
	pattern(notBlank, "a string that is not blank")(r.field("Spec.source").Items)
	r.field("Spec.needs").Items.AnyOf = []*jsonschema.Schema{{Enum: enumOf(framework.Capabilities()...)}, {Pattern: pluginNeed, Comments: "plugin/NAME, such as plugin/LimitRanger"}}
	r.field("Expectation.warnings").OneOf = []*jsonschema.Schema{{Type: "array"}, {Type: "object"}}
	r.field("PluginCall.refused").OneOf = []*jsonschema.Schema{{Type: "boolean"}, {Type: "object"}}
	r.when("Expectation", is("allowed", constant(true)), never("is set together with allowed: true; expected only one of them; remove one of them", "refusedBy"))
	r.when("RefusedBy", has("validation"), never("is set together with validation; expected one: an error is not a validation that does not hold; remove one of them", "error"))
	r.when("Denied", has("message"), never("is set together with message; expected only one of them; write the parts of the error in error", "error"))
	r.when("Wait", is("gone", constant(true)), never("is set together with gone; expected one of them; remove one of them", "object"))
	twice := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{has("inOrder", "anyOrder"), has("inOrder", "include"), has("anyOrder", "include")}}
	r.definitions["Calls"].AllOf = []*jsonschema.Schema{{Not: twice, Comments: "does not say which calls; expected one of inOrder, anyOrder, include and exclude; inOrder and anyOrder each list all the calls"}}
	none := &jsonschema.Schema{Not: &jsonschema.Schema{Type: "array", MaxItems: new(uint64)}}
	r.when("Spec", is("server", func(s *jsonschema.Schema) { s.Required = []string{"fails"} }), perField(
		&jsonschema.Schema{Not: none, Comments: "is set together with spec.server.fails; expected nothing that needs a running server; remove it, and write when: []"},
		"namespaces", "given", "givenFiles", "hooks", "conversion", "matchesNothing", "needs", "featureGate", "exclusive", "isolation", "when"))
	one := uint64(1)
	r.definitions["Spec"].AllOf[0].Else = perField(&jsonschema.Schema{MinItems: &one}, "when")
	r.definitions["RefusedBy"].DependentRequired = map[string][]string{"binding": {"policy"}, "validation": {"policy"}}
	r.policyCases()
	r.replies()
	r.steps()
	r.names()
	r.exactlyOne("Step", slices.Concat(requestActions(), otherActions())...)
	r.exactlyOne("Patch", "json", "merge", "strategic")
	r.exactlyOne("RefusedBy", "webhook", "policy")
	for typ, short := range shorts() {
		r.shorten(typ.Name(), short)
	}
}

// has is the condition that a struct has some fields, and is that a field has a value.
func has(fields ...string) *jsonschema.Schema { return &jsonschema.Schema{Required: fields} }

func is(field string, value func(*jsonschema.Schema)) *jsonschema.Schema {
	of := &jsonschema.Schema{}
	value(of)
	condition := perField(of, field)
	condition.Required = []string{field}
	return condition
}

// perField is the schema of a struct with one schema for some of its fields.
func perField(schema *jsonschema.Schema, fields ...string) *jsonschema.Schema {
	properties := jsonschema.NewProperties()
	for _, field := range fields {
		properties.Set(field, schema)
	}
	return &jsonschema.Schema{Properties: properties}
}

// never refuses fields. The loader reports their values with a comment, "what is wrong; what was expected; what to do".
func never(comment string, fields ...string) *jsonschema.Schema {
	return perField(&jsonschema.Schema{Not: &jsonschema.Schema{}, Comments: comment}, fields...)
}

// misplaced is never, and the loader reports the names of the fields.
func misplaced(comment string, fields ...string) *jsonschema.Schema {
	refused := perField(jsonschema.FalseSchema, fields...)
	refused.Comments = comment
	return refused
}

// when adds a schema for a struct that meets a condition.
func (r refinement) when(in string, condition, then *jsonschema.Schema) {
	r.definitions[in].AllOf = append(r.definitions[in].AllOf, &jsonschema.Schema{If: condition, Then: then})
}

// others returns the fields of a struct but one.
func (r refinement) others(in, but string) []string {
	var names []string
	for pair := r.definitions[in].Properties.Oldest(); pair != nil; pair = pair.Next() {
		if pair.Key != but {
			names = append(names, pair.Key)
		}
	}
	return names
}

// replies says what a Hook can carry out.
func (r refinement) replies() {
	var connection []any
	for _, fault := range hook.Faults() {
		if fault.OfConnection() {
			connection = append(connection, fault)
		}
	}
	for _, in := range []string{"Hook", "Reply"} {
		r.when(in, has("barrier"), has("barrierSize"))
		r.when(in, has("barrierSize"), has("barrier"))
		r.when(in, is("fault", enum(connection...)), never("has no effect with this fault, which prevents every call; expected no other field; remove it", r.others("Reply", "fault")...))
		r.when(in, is("fault", enum(hook.Reset, hook.Hang)), never("has no effect with this fault, which sends no answer; expected no other answer; remove it", "http"))
		r.field(in + ".barrierSize").Minimum = "2"
	}
	two := uint64(2)
	alone := &jsonschema.Schema{Not: &jsonschema.Schema{Enum: connection}, Comments: "applies to every call of a hook; expected it in the only reply"}
	replies := r.field("Hook.replies")
	replies.If, replies.Then = &jsonschema.Schema{MinItems: &two}, &jsonschema.Schema{Items: perField(alone, "fault")}
	r.when("Hook", has("replies"), misplaced("is set together with replies; expected one reply or several; move it into the replies that need it", r.others("Hook", "replies")...))
	code, header := r.field("HTTP.code"), r.field("HTTP.header")
	code.Minimum, code.Maximum = "200", "999"
	pattern(headerValue, "the value of a header")(header.AdditionalProperties)
}

// steps says which fields of a step have an effect.
func (r refinement) steps() {
	const (
		noRequest  = "has no effect in this step; expected it only with a request; move it to the step that sends the request"
		oneRequest = "is for several requests; expected it only for one; move it to the then of a step in parallel"
		allCalls   = "is for one of several parallel requests; expected it only for all together; move it to the then of the parallel step"
	)
	request := []string{"subresource", "parent", "name", "namespace", "as", "dryRun", "options", "body", "contentType", "eventually"}
	for _, action := range otherActions() {
		if action == "parallel" {
			r.when("Step", has(action), perField(never(oneRequest, "plugins", "refusedBy"), "then"))
			r.when("Step", has(action), misplaced(noRequest, request...))
			continue
		}
		r.when("Step", has(action), misplaced(noRequest, append(request, "then")...))
	}
	inner := never("has no effect; expected control only for a step of when; set it for the outer step", "control")
	inner.Properties.Set("then", misplaced(allCalls, "calls", "distinct", "serial", "overlapping", "answeredLast"))
	r.field("Step.parallel").Items = &jsonschema.Schema{Ref: "#/$defs/Step", Properties: inner.Properties}
	for _, in := range []string{"Hook", "Reply"} {
		r.field(in + ".meanwhile").Items = &jsonschema.Schema{Ref: "#/$defs/Step", Properties: never(inner.Properties.Value("control").Comments, "control").Properties}
	}
	r.when("Step", &jsonschema.Schema{Not: has("name")}, perField(has("name"), "get", "patch", "delete", "connect", "wait"))
	r.field("Step.remove").Items.Required = []string{"name"}
}

// names says which names maps must not have.
func (r refinement) names() {
	refuse := func(s *jsonschema.Schema, names, comment string) {
		s.PatternProperties, s.Comments = map[string]*jsonschema.Schema{names: jsonschema.FalseSchema}, comment
	}
	const own = "belongs to admissiontest; expected labels without the prefix admissiontest.dev/"
	refuse(r.field("Namespace.labels"), `^admissiontest\.dev/`, own)
	namespaces := r.field("PolicyTest.namespaces")
	refuse(namespaces, `[^-a-z0-9]|^-|-$|^$|^.{41,}$`, "is not a name for a namespace of the test; expected at most 40 lower-case letters, digits and hyphens")
	refuse(namespaces.AdditionalProperties, `^admissiontest\.dev/`, own)
	refuse(r.field("Server.featureGates"), `[^A-Za-z0-9]|^[^A-Za-z]|^$`, "is no feature gate; expected a name of letters and digits")
	refuse(r.field("HTTP.header"), "[^-!#$%&'*+.^_`|~0-9A-Za-z]|^$", "is not the name of a header; expected one")
	const outside, comment = `^/|^$|(^|/)\.\.(/|$)|\$\(`, "is not a path in the folder of the files; expected a relative path without placeholders"
	refuse(r.field("Server.files"), outside, comment)
	refuse(r.field("Files.write"), outside, comment)
	content := r.field("Files.write").AdditionalProperties
	content.Not, content.Comments = &jsonschema.Schema{Pattern: `\$\(steps\.`}, "has a placeholder $(steps.…); expected text that is known before the run"
	r.field("Files.remove").Items.Not, r.field("Files.remove").Items.Comments = &jsonschema.Schema{Pattern: outside}, comment
}

// policyCases says which fields of a case of a PolicyTest go together, and what is expected.
func (r refinement) policyCases() {
	const in, update = "PolicyCase", "is set without an UPDATE; expected it only for an UPDATE; write the object of a DELETE as object, and a Scenario for other requests to a subresource"
	r.each(pattern(namespaceName, shortName), "PolicyCase.namespace")
	r.when(in, is("operation", enum(operationUpdate)), has("old"))
	r.when(in, is("operation", enum(operationCreate, operationDelete)), never(update, "old", "subresource"))
	r.when(in, &jsonschema.Schema{Not: has("old")}, never(update, "subresource"))
	for _, other := range []*jsonschema.Schema{is("allowed", constant(true)), has("mutated")} {
		r.when(in, other, never("is set together with allowed or mutated; expected only one of them; write one case for each", "denied"))
	}
	allowed := r.field("PolicyCase.allowed")
	allowed.Not, allowed.Comments = &jsonschema.Schema{Const: false}, `is false; expected denied for a request that a policy refuses; write "denied: true", or "denied: MESSAGE"`
	one := uint64(1)
	failed := perField(&jsonschema.Schema{Type: "string", MinLength: &one}, "error")
	failed.Type, failed.Required, failed.AdditionalProperties = "object", []string{"error"}, jsonschema.FalseSchema
	part := []*jsonschema.Schema{{Type: "string", MinLength: &one}, failed}
	parts := &jsonschema.Schema{Type: "array", MinItems: &one, Items: &jsonschema.Schema{OneOf: part}}
	r.field("PolicyCase.warned").OneOf = append([]*jsonschema.Schema{{Type: "boolean", Const: false}, parts}, part...)
	r.field("PolicyCase.audited").OneOf = []*jsonschema.Schema{part[0], parts, {Type: "object", MinProperties: &one}}
	notEmpty(r.field("PolicyCase.mutated"))
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
		short = append([]*jsonschema.Schema{{Type: "boolean", Const: true, Comments: "write allowed: true"}}, value.OneOf...)
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
