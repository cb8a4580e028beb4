package kinds

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields returns the names of the fields that can be where the last part of a path is, sorted: for
// "webhooks[0].timeoutSecond" the fields of a webhook. It returns none for a kind or path that is not
// known.
func Fields(apiVersion, kind, path string) []string {
	object, err := writtenMost().New(schema.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		return nil
	}
	typ := reflect.TypeOf(object).Elem()
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		name, _, _ := strings.Cut(step, "[")
		next, ok := members(structOf(typ))[name]
		if !ok {
			return nil
		}
		typ = next
	}
	return slices.Sorted(maps.Keys(members(structOf(typ))))
}

// writtenMost returns a scheme of the kinds that scenarios write most.
func writtenMost() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{
		admissionregistrationv1.AddToScheme, admissionregistrationv1beta1.AddToScheme, appsv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	}
	if err := builder.AddToScheme(scheme); err != nil {
		return runtime.NewScheme() // without kinds there are no suggestions
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: metav1.GroupName, Version: "v1"}) // CreateOptions, ...
	return scheme
}

// Missing is a field of a path that does not exist.
type Missing struct {
	// Index is the index of the field in the path.
	Index int
	// Names are the fields that exist there, sorted. None for a value that has no fields.
	Names []string
}

// MissingInKind returns the first field of a path that a kind does not have, or nil. Known is false if the kind is
// not known.
func MissingInKind(kind schema.GroupVersionKind, path []any) (missing *Missing, known bool) {
	object, err := writtenMost().New(kind)
	if err != nil {
		return nil, false
	}
	return MissingInType(reflect.TypeOf(object), path), true
}

// MissingInType returns the first field of a path that values of a type do not have in JSON, or nil.
func MissingInType(typ reflect.Type, path []any) *Missing {
	for i, step := range path {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		name, isName := step.(string)
		switch {
		case isFree(typ):
			return nil
		case typ.Kind() == reflect.Map:
			typ = typ.Elem()
		case typ.Kind() == reflect.Slice && !isName:
			typ = typ.Elem()
		case !isName:
			return nil // a list never matches a value that is none
		default:
			all := members(typ)
			next, ok := all[name]
			if !ok {
				return &Missing{i, slices.Sorted(maps.Keys(all))}
			}
			typ = next
		}
	}
	return nil
}

// isFree reports whether a type does not say which fields its values have: an interface, bytes, or a type
// that encodes itself.
func isFree(typ reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return typ.Kind() == reflect.Interface || typ == reflect.TypeFor[[]byte]() || typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler)
}

// structOf returns the struct inside of pointers, lists and mappings.
func structOf(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	return typ
}

// members returns the fields of a struct by their names in JSON, and none for another type.
func members(typ reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	if typ.Kind() != reflect.Struct {
		return all
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (strings.Contains(options, "inline") || field.Anonymous):
			maps.Copy(all, members(structOf(field.Type)))
		case name != "":
			all[name] = field.Type
		}
	}
	return all
}
