package hook

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// MarshalJSON writes the operation as RFC 6902 defines it: add, replace and test have a
// value, which can be null; other operations have none.
func (o PatchOperation) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"op": o.Op, "path": o.Path}
	if o.From != "" {
		fields["from"] = o.From
	}
	if o.Op == "add" || o.Op == "replace" || o.Op == "test" {
		fields["value"] = o.Value
	}
	return json.Marshal(fields)
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
