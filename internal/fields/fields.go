// Package fields has the names of the fields of Kubernetes' own kinds, to suggest one for a misspelt
// name.
//
//	fields.Names("v1", "ConfigMap", "dta") // apiVersion, binaryData, data, ...
//
// # Promise
//
// Names returns the fields that the version of k8s.io/api in this build has.
//
// # Not promised
//
// Not every kind is known, and an API server of another version can have other fields. Use the
// names for suggestions only.
package fields

import (
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names returns the names of the fields that can be where the last part of a path is, sorted: for
// "webhooks[0].timeoutSecond" those of a webhook. It returns none for a kind or path that is not
// known.
func Names(apiVersion, kind, path string) []string {
	object, err := kinds().New(schema.FromAPIVersionAndKind(apiVersion, kind))
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

// kinds returns a scheme of the kinds that scenarios write most.
func kinds() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{
		admissionregistrationv1.AddToScheme, admissionregistrationv1beta1.AddToScheme, appsv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	}
	if err := builder.AddToScheme(scheme); err != nil {
		return runtime.NewScheme() // without kinds there are no suggestions
	}
	return scheme
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
