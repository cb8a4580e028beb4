package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
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
// Unknown fields are invalid, except in manifests. [Load] refuses everything
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

// refine adds to the schema what the Go types do not express: the rules of the format.
func refine(definitions jsonschema.Definitions) {
	for typ, all := range rules() {
		for _, one := range all {
			if found, ok := definitions[typ.Name()].Properties.Get(one.field); ok {
				addRule(found, one)
			}
		}
	}
	spec := definitions["Spec"].Properties
	one := uint64(1)
	spec.Value("source").MinItems = &one
	spec.Value("needs").Items.AnyOf = []*jsonschema.Schema{{Enum: enumOf(framework.Capabilities())}, {Pattern: pluginNeed}}
	exactlyOne(definitions["Step"], actions())
	exactlyOne(definitions["Patch"], patchKinds())
	for typ, short := range shorts() {
		shorten(definitions, typ.Name(), short)
	}
	either(definitions, "Denied", &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: true}, oneOrMore(typeText)}})
}

// addRule adds a rule to the schema of a field.
func addRule(field *jsonschema.Schema, one rule) {
	switch {
	case len(one.enum) == 1:
		field.Const = one.enum[0]
	case one.enum != nil:
		field.Enum = enumOf(one.enum)
	}
	field.Pattern = one.pattern
	for _, kind := range one.kinds {
		field.OneOf = append(field.OneOf, &jsonschema.Schema{Type: typeOf(kind)})
	}
}

// typeOf returns the JSON type of a kind.
func typeOf(kind document.Kind) string {
	switch kind {
	case document.KindBool:
		return "boolean"
	case document.KindList:
		return typeList
	case document.KindMapping:
		return typeMapping
	default:
		return typeText
	}
}

// exactlyOne lets a struct have exactly one of some fields.
func exactlyOne(of *jsonschema.Schema, names []string) {
	for _, name := range names {
		of.OneOf = append(of.OneOf, &jsonschema.Schema{Required: []string{name}})
	}
}

// shorten adds the short form of a struct to the schema.
func shorten(definitions jsonschema.Definitions, name string, short document.Short) {
	field := definitions[name].Properties.Value(short.Field)
	either(definitions, name, &jsonschema.Schema{Type: typeOf(short.Kind), Items: field.Items})
}

// either lets a struct be written in another form too.
func either(definitions jsonschema.Definitions, name string, other *jsonschema.Schema) {
	long := definitions[name]
	other.Description = long.Description
	definitions[name] = &jsonschema.Schema{OneOf: []*jsonschema.Schema{other, long}, Description: long.Description}
}
