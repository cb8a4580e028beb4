// Package review builds AdmissionReviews from manifests, in this process and without an API server.
//
// The objects of Kubernetes' own kinds are decoded and encoded as an API server does, but are not defaulted: the
// defaults are in k8s.io/kubernetes. The metadata that an API server sets before admission is set.
package review

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apijson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/object"
)

// The operations.
const (
	OpCreate  = "CREATE"
	OpUpdate  = "UPDATE"
	OpDelete  = "DELETE"
	OpConnect = "CONNECT"
)

// User is the user of requests that do not say who sends them: an administrator of a namespace.
func User() framework.User {
	return framework.User{Name: "jane", UID: "3b1f5b0e-6c2d-4f0e-9d57-0c3a1e5d7f10", Groups: []string{"developers", "system:authenticated"}}
}

// Build returns the AdmissionReview of a request. APIVersion is "admission.k8s.io/v1" or "admission.k8s.io/v1beta1".
func Build(r reach.Request, apiVersion, uid string) map[string]any {
	kind := map[string]any{"group": r.Kind.Group, "version": r.Kind.Version, "kind": r.Kind.Kind}
	resource := map[string]any{"group": r.Resource.Group, "version": r.Resource.Version, "resource": r.Resource.Resource}
	user := map[string]any{"username": r.User.Name}
	if r.User.UID != "" {
		user["uid"] = r.User.UID
	}
	if len(r.User.Groups) > 0 {
		user["groups"] = r.User.Groups
	}
	if len(r.User.Extra) > 0 {
		user["extra"] = r.User.Extra
	}
	request := map[string]any{
		"uid": uid, "kind": kind, "resource": resource, "requestKind": maps.Clone(kind), "requestResource": maps.Clone(resource),
		"operation": r.Operation, "userInfo": user, "object": orNull(r.Object), "oldObject": orNull(r.OldObject),
		"dryRun": r.DryRun, "options": orNull(r.Options),
	}
	if r.Name != "" {
		request["name"] = r.Name
	}
	if r.Namespace != "" {
		request["namespace"] = r.Namespace
	}
	if r.Subresource != "" {
		request["subResource"], request["requestSubResource"] = r.Subresource, r.Subresource
	}
	return map[string]any{"apiVersion": apiVersion, "kind": "AdmissionReview", "request": request}
}

// orNull returns nil for a nil map, so that it is encoded as null.
func orNull(fields map[string]any) any {
	if fields == nil {
		return nil
	}
	return fields
}

// Encoded returns an object as an API server encodes it. In an object of a kind that is not Kubernetes' own, only numbers change: 1.0 is 1.
// The error names a field that the kind does not have.
func Encoded(manifest map[string]any) (map[string]any, error) {
	kind, err := object.Kind(manifest)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", object.Describe(manifest), err)
	}
	if !scheme.Scheme.Recognizes(kind) {
		var fields map[string]any
		return fields, utiljson.Unmarshal(data, &fields)
	}
	strict := apijson.NewSerializerWithOptions(apijson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, apijson.SerializerOptions{Strict: true})
	typed, _, err := strict.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", object.Describe(manifest), err)
	}
	return encode(typed, kind)
}

// Decoded returns what a decoder of the kind keeps of an object: fields that the kind does not have are dropped. An
// object of a kind that is not Kubernetes' own does not change.
func Decoded(fields map[string]any) (map[string]any, error) {
	kind, err := object.Kind(fields)
	if err != nil || !scheme.Scheme.Recognizes(kind) {
		return fields, err
	}
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(data, typed); err != nil {
		return nil, err
	}
	return encode(typed, kind)
}

// encode returns a typed object as JSON values, with its kind.
func encode(typed runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	typed.GetObjectKind().SetGroupVersionKind(kind)
	data, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	return fields, utiljson.Unmarshal(data, &fields)
}
