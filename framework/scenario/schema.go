package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
)

//go:generate go test -run ^TestSchemaCommentsAreCurrent$ -update .

// schemaID identifies the JSON Schema of this version of the format.
const schemaID = "https://admissiontest.dev/schemas/v1alpha1/scenario.json"

// The JSON types of values that are not structs.
const (
	typeText    = "string"
	typeList    = "array"
	typeMapping = "object"
)

// Schema returns the indented JSON Schema (draft 2020-12) of a file of Scenarios or PolicyTests.
// Editors use it for completion; its descriptions come from the Go documentation.
// Unknown fields are invalid, except in manifests. Package load refuses everything
// that the schema refuses, and more.
func Schema() ([]byte, error) {
	reflector := jsonschema.Reflector{
		Mapper:     mapped,
		CommentMap: schemaComments(),
	}
	schema := reflector.ReflectFromType(reflect.TypeFor[Scenario]())
	table := reflector.ReflectFromType(reflect.TypeFor[PolicyTest]())
	maps.Copy(schema.Definitions, table.Definitions)
	isTable := jsonschema.NewProperties()
	isTable.Set("kind", &jsonschema.Schema{Const: KindPolicyTest})
	schema.If = &jsonschema.Schema{Properties: isTable, Required: []string{"kind"}}
	schema.Then = &jsonschema.Schema{Ref: table.Ref}
	schema.Else = &jsonschema.Schema{Ref: schema.Ref}
	schema.Ref = ""
	schema.ID = schemaID
	schema.Title = "admissiontest scenario"
	refine(schema.Definitions)
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write JSON schema: %w", err)
	}
	return append(data, '\n'), nil
}

// mapped returns the schema of a type that is not written as its Go type suggests,
// or nil.
func mapped(typ reflect.Type) *jsonschema.Schema {
	switch typ {
	case reflect.TypeFor[OneOrMore[string]]():
		return oneOrMore(typeText)
	case reflect.TypeFor[OneOrMore[int]]():
		return oneOrMore("integer")
	case reflect.TypeFor[Manifests]():
		one := []*jsonschema.Schema{{Type: typeText}, {Type: typeMapping}}
		return &jsonschema.Schema{OneOf: append(one, &jsonschema.Schema{Type: typeList, Items: &jsonschema.Schema{OneOf: one}})}
	case reflect.TypeFor[hook.Duration]():
		return &jsonschema.Schema{Type: typeText, Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`, Examples: []any{"150ms"}}
	case reflect.TypeFor[hook.Fault]():
		return &jsonschema.Schema{Type: typeText, Enum: enumOf(hook.Faults())}
	case reflect.TypeFor[framework.Level]():
		return &jsonschema.Schema{Type: typeText, Enum: enumOf(framework.Levels())}
	default:
		return nil
	}
}

func oneOrMore(of string) *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: of},
		{Type: typeList, Items: &jsonschema.Schema{Type: of}},
	}}
}

func enumOf[T any](values []T) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value
	}
	return all
}

// refine adds to the schema what the Go types do not express.
func refine(definitions jsonschema.Definitions) {
	property := func(definition, name string, change func(*jsonschema.Schema)) {
		if of := definitions[definition]; of != nil {
			if found, ok := of.Properties.Get(name); ok {
				change(found)
			}
		}
	}
	property("Scenario", "apiVersion", func(s *jsonschema.Schema) { s.Const = APIVersion })
	property("Scenario", "kind", func(s *jsonschema.Schema) { s.Const = Kind })
	property("PolicyTest", "apiVersion", func(s *jsonschema.Schema) { s.Const = APIVersion })
	property("PolicyTest", "kind", func(s *jsonschema.Schema) { s.Const = KindPolicyTest })
	property("PolicyTestMetadata", "name", func(s *jsonschema.Schema) { s.Pattern = `^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$` })
	property("PolicyTest", "isolation", func(s *jsonschema.Schema) { s.Enum = []any{IsolationNone} })
	property("PolicyCase", "operation", func(s *jsonschema.Schema) { s.Enum = enumOf(grammar.Operations()) })
	property("Metadata", "name", func(s *jsonschema.Schema) {
		s.Pattern = `^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+$`
	})
	notEmpty := func(s *jsonschema.Schema) { one := uint64(1); s.MinItems = &one }
	property("Spec", "source", notEmpty)
	property("Spec", "since", func(s *jsonschema.Schema) { s.Pattern = `^1\.(0|[1-9][0-9]{0,2})$` })
	property("Spec", "behaviours", func(s *jsonschema.Schema) {
		s.Items.Pattern = `^([A-Z][A-Z0-9]*|PLUGIN-[A-Za-z][A-Za-z0-9]*)-[0-9]{3}$`
	})
	property("Spec", "needs", func(s *jsonschema.Schema) {
		s.Items.AnyOf = []*jsonschema.Schema{{Enum: enumOf(framework.Capabilities())}, {Pattern: "^" + framework.PluginPrefix + `[^ /,"\\]+$`}}
	})
	property("Spec", "isolation", func(s *jsonschema.Schema) { s.Enum = []any{IsolationNone} })
	property("Namespace", "name", func(s *jsonschema.Schema) { s.Pattern = grammar.NamespaceName })
	property("Call", "phase", func(s *jsonschema.Schema) {
		s.Enum = []any{framework.Mutating, framework.Validating}
	})
	property("PluginCall", "phase", func(s *jsonschema.Schema) {
		s.Enum = []any{framework.Mutating, framework.Validating}
	})
	property("PluginCall", "refused", func(s *jsonschema.Schema) {
		s.OneOf = []*jsonschema.Schema{{Type: "boolean"}, {Type: typeMapping}}
	})
	property("Expectation", "warnings", func(s *jsonschema.Schema) {
		s.OneOf = []*jsonschema.Schema{{Type: typeList}, {Type: typeMapping}}
	})
	if step := definitions["Step"]; step != nil {
		for _, action := range append(grammar.RequestActions(), grammar.OtherActions()...) {
			step.OneOf = append(step.OneOf, &jsonschema.Schema{Required: []string{action}})
		}
	}
	if patch := definitions["Patch"]; patch != nil {
		for _, name := range grammar.PatchKinds() {
			patch.OneOf = append(patch.OneOf, &jsonschema.Schema{Required: []string{name}})
		}
	}
	shorten(definitions, "User", &jsonschema.Schema{Type: typeText})
	shorten(definitions, "Denied", &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: true}, oneOrMore(typeText)}})
	shorten(definitions, "Call", &jsonschema.Schema{Type: typeText})
	shorten(definitions, "PluginCall", &jsonschema.Schema{Type: typeText})
	shorten(definitions, "Plugins", &jsonschema.Schema{
		Type: typeList, Items: &jsonschema.Schema{Ref: "#/$defs/PluginCall"},
	})
	shorten(definitions, "Calls", &jsonschema.Schema{
		Type: typeList, Items: &jsonschema.Schema{Ref: "#/$defs/Call"},
	})
}

// shorten adds a short form of a struct to the schema.
func shorten(definitions jsonschema.Definitions, name string, short *jsonschema.Schema) {
	if long := definitions[name]; long != nil {
		short.Description = long.Description
		definitions[name] = &jsonschema.Schema{OneOf: []*jsonschema.Schema{short, long}, Description: long.Description}
	}
}
