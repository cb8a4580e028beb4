package expect

import (
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

// diffs compares objects with what is expected, as YAML. Objects without a difference that YAML shows
// are left out.
func (o Options) diffs(objects []Object) []report.ObjectDiff {
	var all []report.ObjectDiff
	for _, object := range objects {
		expected, err := yaml.Marshal(o.shown(object.Expected))
		if err != nil {
			continue // a Go value without a JSON form; the mismatches name it
		}
		actual, err := yaml.Marshal(o.shown(object.Actual))
		if err != nil {
			continue
		}
		lines := textDiff(string(expected), string(actual))
		for i, line := range lines {
			lines[i] = match.Matcher{}.Cut(line)
		}
		if len(lines) > 0 {
			all = append(all, report.ObjectDiff{Path: object.Path, Lines: lines})
		}
	}
	return all
}

// shown returns a value without what a report does not show. It is done before the value is divided
// into lines, because a secret can have several.
func (o Options) shown(value any) any {
	switch value := value.(type) {
	case string:
		return redact.Text(value)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = o.shown(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[redact.Text(key)] = o.shown(item)
		}
		return out
	default:
		return value
	}
}

// operationLimit is the number of operations of a patch that a report has.
const operationLimit = 20

// patchOf returns the operations of the patch that a webhook answered, and the number of those that
// are left out. They do not show the values of secrets.
func (o Options) patchOf(call framework.Call) (operations []report.PatchOperation, more int) {
	m, seen := redact.Matcher(), redact.Fields(map[string]any{"request": call.Request(), "response": call.Response})
	response, _ := seen["response"].(map[string]any)
	patch, _ := response["patch"].([]any)
	for i, item := range patch {
		if i == operationLimit {
			return operations, len(patch) - i
		}
		operation, _ := item.(map[string]any)
		one := report.PatchOperation{Op: asText(operation["op"], m), Path: asText(operation["path"], m)}
		if value, ok := operation["value"]; ok {
			one.Value = m.Show(value)
		} else if from, ok := operation["from"]; ok {
			one.Value = "from " + asText(from, m)
		}
		operations = append(operations, one)
	}
	return operations, 0
}

// asText returns a field of a patch, which a webhook can set to anything.
func asText(value any, m match.Matcher) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return m.Cut(value)
	default:
		return m.Show(value)
	}
}
