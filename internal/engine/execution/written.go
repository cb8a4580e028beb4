package execution

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// writesField reports whether the scenario itself writes a field of that name: in a manifest, a patch, the schema of a
// CustomResourceDefinition, an expression or a body. It can expect that the API server drops such a field.
func (c *Case) writesField(path []any) bool {
	text, err := json.Marshal([]any{c.Given, c.Scenario.Spec.When, c.Scenario.Spec.Hooks})
	var written any
	if err != nil || json.Unmarshal(text, &written) != nil || len(path) == 0 {
		return true
	}
	return mentions(written, regexp.MustCompile(`\b`+regexp.QuoteMeta(fmt.Sprint(path[len(path)-1]))+`\b`))
}

// mentions reports whether a value has a name in it, besides expectations.
func mentions(value any, name *regexp.Regexp) bool {
	switch value := value.(type) {
	case string:
		return name.MatchString(value)
	case []any:
		for _, item := range value {
			if mentions(item, name) {
				return true
			}
		}
	case map[string]any:
		for key, inner := range value {
			if key != "then" && key != "wait" && (name.MatchString(key) || mentions(inner, name)) {
				return true
			}
		}
	}
	return false
}
