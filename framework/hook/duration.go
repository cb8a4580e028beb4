package hook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/invopop/jsonschema"
)

// String writes the duration as Go does: "150ms".
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string such as "150ms". A number is an error, since it
// would not say which unit it is in.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf(`read duration: got %s, want a string with a unit, as "150ms"`, data)
	}
	return d.parse(text)
}

// UnmarshalYAML reads the same from a node of github.com/goccy/go-yaml. Its errors
// are *yaml.SyntaxError and carry the node's position.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	for {
		anchor, ok := node.(*ast.AnchorNode)
		if !ok {
			break
		}
		node = anchor.Value
	}
	text, ok := node.(*ast.StringNode)
	if !ok {
		return &yaml.SyntaxError{
			Message: fmt.Sprintf(`read duration: got %s, want a string with a unit, as "150ms"`, node),
			Token:   node.GetToken(),
		}
	}
	if err := d.parse(text.Value); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	return nil
}

func (d *Duration) parse(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`read duration: got %q, want a number and a unit, as "150ms" or "2s"`, text)
	}
	*d = Duration(parsed)
	return nil
}

// JSONSchema describes the duration as the string it is written as.
func (Duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:        "string",
		Pattern:     `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`,
		Description: "A duration as Go writes it.",
		Examples:    []any{"150ms", "2s"},
	}
}

// JSONSchema lists the names of the Faults.
func (Fault) JSONSchema() *jsonschema.Schema {
	names := make([]any, 0, len(Faults()))
	for _, fault := range Faults() {
		names = append(names, string(fault))
	}
	return &jsonschema.Schema{Type: "string", Enum: names, Description: "A named way to misbehave."}
}
