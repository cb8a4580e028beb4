package scenario

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/hook"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

type schemaDefinition struct {
	Properties           map[string]map[string]any `json:"properties"`
	Required             []string                  `json:"required"`
	AdditionalProperties any                       `json:"additionalProperties"`
	Description          string                    `json:"description"`
	OneOf                []schemaDefinition        `json:"oneOf"`
}

func readSchema(t *testing.T) map[string]schemaDefinition {
	t.Helper()
	data, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Version     string                      `json:"$schema"`
		Definitions map[string]schemaDefinition `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	if want := "https://json-schema.org/draft/2020-12/schema"; schema.Version != want {
		t.Errorf("$schema is %q, want %q", schema.Version, want)
	}
	return schema.Definitions
}

// documentStructs returns the structs of a file, as the loader reads them.
func documentStructs() document.Structs {
	return document.StructsOf(reflect.TypeFor[Scenario](), reflect.TypeFor[PolicyTest]())
}

// TestSchemaHasTheLoadersFields compares the schema with what the loader reads:
// each struct with the same fields, the same required ones, and no others.
func TestSchemaHasTheLoadersFields(t *testing.T) {
	definitions := readSchema(t)
	for typ, plan := range documentStructs() {
		definition, ok := definitions[typ.Name()]
		if !ok {
			t.Errorf("%s is not in the schema", typ)
			continue
		}
		if definition.Properties == nil && len(definition.OneOf) == 2 {
			definition = definition.OneOf[1] // the long form, after the short form
		}
		want := slices.Sorted(slices.Values(plan.Names))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(definition.Properties))); diff != "" {
			t.Errorf("fields of %s (-loader +schema)\n%s", typ, diff)
		}
		sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
		if diff := cmp.Diff(sorted(plan.Required), sorted(definition.Required)); diff != "" {
			t.Errorf("required fields of %s (-loader +schema)\n%s", typ, diff)
		}
		if definition.AdditionalProperties != false {
			t.Errorf("%s is open in the schema, and the loader refuses other fields", typ)
		}
	}
}

// Each rule and each short form is for a field that exists. A rule for another field would check nothing.
func TestRulesAreForFields(t *testing.T) {
	structs := documentStructs()
	check := func(typ reflect.Type, field string) {
		if plan, ok := structs[typ]; !ok || !slices.Contains(plan.Names, field) {
			t.Errorf("%s has no field %q", typ, field)
		}
	}
	for typ, all := range rules() {
		for _, one := range all {
			check(typ, one.field)
		}
	}
	for typ, short := range shorts() {
		check(typ, short.Field)
	}
	for _, action := range actions() {
		check(reflect.TypeFor[Step](), action)
	}
	for _, kind := range patchKinds() {
		check(reflect.TypeFor[Patch](), kind)
	}
}

func TestSchemaDescribesFields(t *testing.T) {
	definitions := readSchema(t)
	for name, definition := range definitions {
		if definition.Description == "" && name != "Call" {
			t.Errorf("%s has no description", name)
		}
		for field, property := range definition.Properties {
			_, reference := property["$ref"]
			if text, _ := property["description"].(string); text == "" && !reference && !undescribed(name, field) {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
	if got, want := definitions["Spec"].Properties["exclusive"]["description"], "Exclusive means that the scenario needs the server for itself: it runs while no other scenario has anything installed. Use it for what cannot be narrowed to a namespace."; got != want {
		t.Errorf("description of exclusive is %q, want %q", got, want)
	}
}

func TestSchemaOfDurationsAndFaults(t *testing.T) {
	reply := readSchema(t)["Reply"].Properties
	pattern, _ := reply["delay"]["pattern"].(string)
	for text, want := range map[string]bool{"150ms": true, "1m30s": true, "1.5s": true, "0": true, "150": false, "soon": false, "": false} {
		t.Run(text, func(t *testing.T) {
			if got := regexp.MustCompile(pattern).MatchString(text); got != want {
				t.Errorf("pattern %s: got %t for %q, want %t", pattern, got, text, want)
			}
		})
	}
	if faults, _ := reply["fault"]["enum"].([]any); len(faults) != len(hook.Faults()) {
		t.Errorf("fault: got %d names, want %d", len(faults), len(hook.Faults()))
	}
}

// undescribed are fields that need no description.
func undescribed(definition, field string) bool {
	switch definition {
	case "User", "PatchOperation":
		return true
	default:
		return slices.Contains([]string{"apiVersion", "kind", "name"}, field)
	}
}

func TestSchemaIsAlwaysTheSame(t *testing.T) {
	first, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("two calls of Schema differ")
	}
}
