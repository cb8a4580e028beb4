package hook

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// MarshalJSON writes the operation as RFC 6902 defines it: add, replace and test have a
// value, which can be null; other operations have none.
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

// mergePatch returns a document with a JSON merge patch (RFC 7386) applied.
func mergePatch(document, patch map[string]any) (map[string]any, error) {
	original, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode AdmissionReview: %w", err)
	}
	changes, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode review of the reply: %w", err)
	}
	merged, err := jsonpatch.MergePatch(original, changes)
	if err != nil {
		return nil, fmt.Errorf("merge review of the reply into the AdmissionReview: %w", err)
	}
	var result map[string]any
	return result, json.Unmarshal(merged, &result)
}
