package expect

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

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
