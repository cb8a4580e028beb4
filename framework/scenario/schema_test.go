package scenario

import (
	"encoding/json"
	"slices"
	"testing"
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

// Each comparison and each form is of something that the schema has. One for something else would check nothing.
func TestFormatIsThatOfTheSchema(t *testing.T) {
	definitions := readSchema(t)
	for typ, fields := range comparisons() {
		definition := definitions[typ.Name()]
		for _, other := range definition.OneOf {
			if other.Properties != nil {
				definition = other // the long form
			}
		}
		for field := range fields {
			if definition.Properties[field] == nil {
				t.Errorf("%s has no field %q", typ, field)
			}
		}
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
	if got, want := definitions["Spec"].Properties["exclusive"]["description"], "Exclusive means that the scenario runs alone, on an API server without other clients, with webhook configurations and policies as they are written. A scenario whose files need that runs alone without it."; got != want {
		t.Errorf("description of exclusive is %q, want %q", got, want)
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
