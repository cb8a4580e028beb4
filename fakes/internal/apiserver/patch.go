package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patch carries out a patch of any type.
func (r *Request) patch() (reply, error) {
	r.server.Store.Lock()
	stored, code, err := r.patchLocked()
	r.server.Store.Unlock()
	if err != nil {
		return reply{}, err
	}
	if r.Call.Subresource == "scale" {
		return r.scale(code, stored)
	}
	return r.objectReply(code, stored)
}

func (r *Request) patchLocked() (runtime.Object, int, error) {
	current := r.server.Store.Get(r.kind, r.at())
	if types.PatchType(r.media) == types.ApplyPatchType && r.Call.Subresource != "scale" {
		return r.applyLocked(current)
	}
	if current == nil {
		return nil, 0, apierrors.NewNotFound(r.kind.GVR.GroupResource(), r.Call.Name)
	}
	if _, err := r.patchOptions(); err != nil {
		return nil, 0, err
	}
	patched, err := r.patched(current)
	if err != nil {
		return nil, 0, err
	}
	patched, err = r.server.updateLocked(r.kind, r.track(current, patched), r.Call.DryRun)
	return patched, http.StatusOK, err
}

// patched returns an object after a patch.
func (r *Request) patched(current runtime.Object) (runtime.Object, error) {
	source := current
	if r.Call.Subresource == "scale" {
		scale, err := r.server.scaleOf(current)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		source = &unstructured.Unstructured{Object: scale}
	}
	before, err := r.server.encode(source)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := r.applyPatch(before)
	if err != nil {
		return nil, err
	}
	switch r.Call.Subresource {
	case "status", "scale":
		var tree map[string]any
		if err := json.Unmarshal(after, &tree); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("decode patched object: %v", err))
		}
		return r.part(current, tree)
	}
	object, err := r.server.decodeObject(after, r.kind)
	if err != nil {
		return nil, err
	}
	return object, r.checkIdentity(object)
}

func (r *Request) applyPatch(before []byte) (after []byte, err error) {
	switch types.PatchType(r.media) {
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(r.body); err == nil {
			after, err = patch.Apply(before)
		}
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, r.body)
	case types.StrategicMergePatchType, types.ApplyPatchType:
		after, err = r.mergeStrategically(before)
	default:
		return nil, unsupportedMedia(r.media)
	}
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return nil, err
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("apply %s: %v", r.media, err))
	}
	return after, nil
}

func (r *Request) mergeStrategically(before []byte) ([]byte, error) {
	body, err := yamlToJSON(r.body)
	if err != nil {
		return nil, err
	}
	if r.kind.Type != nil && r.Call.Subresource != "scale" {
		return strategicpatch.StrategicMergePatch(before, body, r.kind.Empty())
	}
	if types.PatchType(r.media) == types.StrategicMergePatchType {
		return nil, unsupportedMedia(r.media)
	}
	return jsonpatch.MergePatch(before, body)
}

func unsupportedMedia(media string) error {
	err := apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", schema.GroupResource{}, "", "", 0, true)
	err.ErrStatus.Message = fmt.Sprintf("the body of the request was in an unknown format %q: expected one of application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, and for Kubernetes' own types application/strategic-merge-patch+json", media)
	return err
}

// updatePart updates the status of an object, or its scale.
func (r *Request) updatePart(object runtime.Object) (reply, error) {
	tree, err := r.server.tree(object)
	if err != nil {
		return reply{}, apierrors.NewInternalError(err)
	}
	r.server.Store.Lock()
	stored, err := r.updatePartLocked(tree)
	r.server.Store.Unlock()
	if err != nil {
		return reply{}, err
	}
	if r.Call.Subresource == "scale" {
		return r.scale(http.StatusOK, stored)
	}
	return r.objectReply(http.StatusOK, stored)
}

func (r *Request) updatePartLocked(tree map[string]any) (runtime.Object, error) {
	current := r.server.Store.Get(r.kind, r.at())
	if current == nil {
		return nil, apierrors.NewNotFound(r.kind.GVR.GroupResource(), r.Call.Name)
	}
	object, err := r.part(current, tree)
	if err != nil {
		return nil, err
	}
	return r.server.updateLocked(r.kind, r.track(current, object), r.Call.DryRun)
}

// part returns an object with the status, or the scale, of another.
func (r *Request) part(current runtime.Object, given map[string]any) (runtime.Object, error) {
	tree, err := r.server.tree(current)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	for _, field := range []string{"resourceVersion", "uid"} {
		value, _, _ := unstructured.NestedString(given, "metadata", field)
		_ = unstructured.SetNestedField(tree, value, "metadata", field)
	}
	if r.Call.Subresource == "scale" {
		replicas, _, _ := unstructured.NestedFieldNoCopy(given, "spec", "replicas")
		_ = unstructured.SetNestedField(tree, replicas, "spec", "replicas")
	} else if status, ok := given["status"]; ok {
		tree["status"] = status
	} else {
		delete(tree, "status")
	}
	object, err := r.server.fromTree(r.kind, tree)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return object, nil
}

// scale responds with the scale of an object.
func (r *Request) scale(code int, object runtime.Object) (reply, error) {
	scale, err := r.server.scaleOf(object)
	if err != nil {
		return reply{}, apierrors.NewInternalError(err)
	}
	return jsonReply(code, scale)
}

func (s *Server) scaleOf(object runtime.Object) (map[string]any, error) {
	tree, err := s.tree(object)
	if err != nil {
		return nil, err
	}
	scale := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{}, "spec": map[string]any{}, "status": map[string]any{}}
	for _, path := range []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "spec.replicas", "status.replicas"} {
		at := strings.Split(path, ".")
		if value, ok, _ := unstructured.NestedFieldNoCopy(tree, at...); ok {
			_ = unstructured.SetNestedField(scale, value, at...)
		}
	}
	return scale, nil
}
