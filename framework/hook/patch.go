package hook

import "encoding/json"

// MarshalJSON writes the operation as RFC 6902 has it: add, replace and test carry
// a value, null included, and no other operation does.
func (o PatchOperation) MarshalJSON() ([]byte, error) {
	type bare struct {
		Op   string `json:"op"`
		Path string `json:"path"`
		From string `json:"from,omitempty"`
	}
	operation := bare{Op: o.Op, Path: o.Path, From: o.From}
	switch o.Op {
	case "add", "replace", "test":
		return json.Marshal(struct {
			bare
			Value any `json:"value"`
		}{operation, o.Value})
	default:
		return json.Marshal(operation)
	}
}

// mergePatch applies a JSON merge patch (RFC 7386) and returns the outcome. It
// writes to neither of its arguments.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if fields, ok := target.(map[string]any); ok {
		for name, value := range fields {
			merged[name] = value
		}
	}
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
			continue
		}
		merged[name] = mergePatch(merged[name], change)
	}
	return merged
}
