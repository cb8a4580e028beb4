package execution

import (
	"encoding/json"
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
			names = append(names, name)
		}
	}
	if err != nil || json.Unmarshal(text, &written) != nil || len(names) == 0 {
		return true
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return writes(written, names, regexp.MustCompile(`(?s)\b`+strings.Join(quoted, `\b.*\b`)+`\b`))
}

// writes reports whether a value has, besides expectations, fields of some names one below the other, or a string with these
// names in their order.
func writes(value any, names []string, text *regexp.Regexp) bool {
	switch value := value.(type) {
	case string:
		return text.MatchString(value)
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return writes(item, names, text) })
	case map[string]any:
		pointer, _ := value["path"].(string)
		if rest, ok := below(names, pointer); ok && has(value["value"], rest) {
			return true // an operation of a JSON patch
		}
		for key, inner := range value {
			if key != "then" && key != "wait" && (has(map[string]any{key: inner}, names) || writes(inner, names, text)) {
				return true
			}
		}
	}
	return false
}

// below returns the names that follow after the end of a JSON pointer, and whether the pointer has the first names.
func below(names []string, pointer string) (rest []string, ok bool) {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch {
		case step == "-" || strings.Trim(step, "0123456789") == "":
		case len(names) == 0 || names[0] != step:
			return nil, false
		default:
			names = names[1:]
		}
	}
	return names, pointer != ""
}

// has reports whether a value has fields of some names one below the other. Items of lists and what a schema has between
// fields do not count.
func has(value any, names []string) bool {
	if len(names) == 0 {
		return true
	}
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return has(item, names) })
	case map[string]any:
		for _, of := range []string{"properties", "items", "additionalProperties"} {
			if inner, ok := value[of]; ok && has(inner, names) {
				return true
			}
		}
		inner, ok := value[names[0]]
		return ok && has(inner, names[1:])
	default:
		return false
	}
}
