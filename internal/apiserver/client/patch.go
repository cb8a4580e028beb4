package client

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/framework"
)

// Patched returns a copy of an object with the patch of a Request, without the defaults that an API
// server sets.
func Patched(object map[string]any, request framework.HTTP) (map[string]any, error) {
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch request.PatchType {
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(request.Patch); err == nil {
			after, err = patch.Apply(before)
		}
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, request.Patch)
	case types.StrategicMergePatchType:
		kind := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
		typed, unknown := scheme.Scheme.New(kind)
		if unknown != nil {
			return nil, fmt.Errorf("apply a strategic merge patch: %w", unknown)
		}
		after, err = strategicpatch.StrategicMergePatch(before, request.Patch, typed)
	default:
		return nil, fmt.Errorf("apply a patch of type %q: only the API server can", request.PatchType)
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", request.PatchType, err)
	}
	var out unstructured.Unstructured
	if err := out.UnmarshalJSON(after); err != nil {
		return nil, err
	}
	return out.Object, nil
}
