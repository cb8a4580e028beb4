package execution

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// writesField reports whether the scenario itself writes the field of a path: in a manifest, a patch, the schema of a
// CustomResourceDefinition, an expression or a body. It can expect that the API server drops such a field.
func (c *Case) writesField(path []any) bool {
	text, err := json.Marshal([]any{c.Given, c.Scenario.Spec.When, c.Scenario.Spec.Hooks})
	var written any
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	if err != nil || json.Unmarshal(text, &written) != nil || len(names) == 0 {
		return true
	}
	// A schema has other names between those of fields, and a path of a patch has items.
	fields := regexp.MustCompile(`/` + strings.Join(names, `/((properties|items|additionalProperties|-|[0-9]+)/)*`) + `/$`)
	inText := regexp.MustCompile(`(?s)\b` + strings.Join(names, `\b.*\b`) + `\b`)
	return writes(written, "/", func(at string, value any) bool {
		text, _ := value.(string)
		return fields.MatchString(at) || inText.MatchString(text)
	})
}

// writes reports whether a function returns true for one of the values in a value, besides expectations. It gets the place
// of each as a JSON pointer with a slash at the end. The value of an operation of a JSON patch is at the path of the
// operation.
func writes(value any, at string, is func(at string, value any) bool) bool {
	if is(at, value) {
		return true
	}
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, func(item any) bool { return writes(item, at, is) })
	}
	fields, _ := value.(map[string]any)
	pointer, _ := fields["path"].(string)
	return slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(name string) bool {
		here := at + name + "/"
		if name == "value" && strings.HasPrefix(pointer, "/") {
			here = strings.TrimSuffix(pointer, "/") + "/"
		}
		return name != "then" && name != "wait" && writes(fields[name], here, is)
	})
}
