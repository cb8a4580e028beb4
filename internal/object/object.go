// Package object has the few questions about objects and manifests that several
// packages ask.
package object

import (
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsNil reports whether an object is nil, or an interface that holds a nil pointer.
func IsNil(object runtime.Object) bool {
	if object == nil {
		return true
	}
	value := reflect.ValueOf(object)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// ErrNoKind is the error of a manifest without apiVersion or kind.
var ErrNoKind = errors.New("manifest has no apiVersion or no kind: write both, as for kubectl apply")

// Kind returns the apiVersion and kind of a manifest, or ErrNoKind.
func Kind(manifest map[string]any) (schema.GroupVersionKind, error) {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	groupVersion, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion == "" || kind == "" {
		return schema.GroupVersionKind{}, ErrNoKind
	}
	return groupVersion.WithKind(kind), nil
}
