package execution

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// writesField reports whether the scenario itself writes a field: in a manifest, a patch, the schema of a
// CustomResourceDefinition or a mutation. It can expect that the API server drops such a field.
func (c *Case) writesField(path []any) bool {
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, name)
		}
	}
	text, err := json.Marshal([]any{c.Given, c.Scenario.Spec.When, c.Scenario.Spec.Hooks})
	var written any
	if err != nil || json.Unmarshal(text, &written) != nil || len(names) == 0 {
		return true
	}
	if len(names) > 1 && names[0] == "items" { // of a list: its objects are written one at a time
		names = names[1:]
	}
	return isWritten(written, nil, names)
}

// isWritten reports whether a value at a path of names has a field, or writes it by a patch. Items of lists
// are not in paths.
func isWritten(value any, at, field []string) bool {
	if len(at) > 0 && slices.Equal(at, field) {
		return true
	}
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return isWritten(item, at, field) })
	case map[string]any:
		if pointer, ok := value["path"].(string); ok && value["op"] != nil {
			at = namesOf(pointer)
			return len(at) >= len(field) && slices.Equal(at[:len(field)], field) || isWritten(value["value"], at, field)
		}
		for name, inner := range value {
			if isWrittenBy(name, inner, at, field) {
				return true
			}
		}
	}
	return false
}

// isWrittenBy is isWritten for a field of a value at a path.
func isWrittenBy(name string, value any, at, field []string) bool {
	switch name {
	case "then", "wait": // expectations
		return false
	case "mutations", "body": // expressions and bytes
		text, err := json.Marshal(value)
		return err != nil || regexp.MustCompile(`\b`+regexp.QuoteMeta(field[len(field)-1])+`\b`).Match(text)
	case "create", "update", "apply", "install", "merge", "strategic", "openAPIV3Schema":
		return isWritten(value, nil, field)
	case "properties":
		return isWritten(value, at, field)
	default:
		return isWritten(value, append(slices.Clip(at), name), field)
	}
}

// namesOf returns the names in a JSON pointer, without the items of lists.
func namesOf(pointer string) []string {
	var names []string
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if strings.Trim(part, "0123456789-") != "" {
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
	}
	return names
}
