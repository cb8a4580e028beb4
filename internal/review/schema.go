package review

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition returns the CustomResourceDefinition of a kind, and the fields of the version. Both are nil if there is none.
func (k Kinds) definition(kind schema.GroupVersionKind) (definition, version map[string]any) {
	for _, each := range k.definitions {
		group, _, _ := unstructured.NestedString(each, "spec", "group")
		name, _, _ := unstructured.NestedString(each, "spec", "names", "kind")
		if group != kind.Group || name != kind.Kind {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(each, "spec", "versions")
		for _, one := range versions {
			if fields, _ := one.(map[string]any); fields["name"] == kind.Version {
				return each, fields
			}
		}
		return each, nil
	}
	return nil, nil
}

// HasSubresource reports whether the CustomResourceDefinition of a kind has a subresource: status or scale.
func (k Kinds) HasSubresource(kind schema.GroupVersionKind, subresource string) bool {
	_, version := k.definition(kind)
	_, found, _ := unstructured.NestedFieldNoCopy(version, "subresources", subresource)
	return found
}

// Defaulted returns an object with the defaults of its CustomResourceDefinition, as an API server sets them before admission and
// after each mutating webhook. An object of another kind is returned as it is.
func (k Kinds) Defaulted(fields map[string]any) map[string]any {
	_, version := k.definition((&unstructured.Unstructured{Object: fields}).GroupVersionKind())
	validation, found, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	if !found {
		return fields
	}
	result := (&unstructured.Unstructured{Object: fields}).DeepCopy().Object
	setDefaults(result, validation)
	return result
}

// setDefaults sets the defaults of a structural schema. A null is replaced with the default, or removed if there is none, unless the
// field is nullable.
func setDefaults(value any, of map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		properties, _ := of["properties"].(map[string]any)
		for name, each := range properties {
			property, _ := each.(map[string]any)
			byDefault, hasDefault := property["default"]
			current, has := value[name]
			null := has && current == nil && property["nullable"] != true
			switch {
			case hasDefault && (null || !has):
				value[name] = runtime.DeepCopyJSONValue(byDefault)
			case null:
				delete(value, name)
			}
		}
		others, _ := of["additionalProperties"].(map[string]any)
		for name, child := range value {
			property, known := properties[name].(map[string]any)
			if !known {
				property = others
			}
			setDefaults(child, property)
		}
	case []any:
		items, _ := of["items"].(map[string]any)
		for _, child := range value {
			setDefaults(child, items)
		}
	}
}

// Schemas returns the schemas of a custom resource and of each field on a path in it, with any key for the elements of lists and maps.
// Nil means that one of them is not known.
func (k Kinds) Schemas(kind schema.GroupVersionKind, path []string) []map[string]any {
	_, version := k.definition(kind)
	at, found, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	all := []map[string]any{at}
	for _, key := range path {
		properties, _ := at["properties"].(map[string]any)
		elements, _ := at["additionalProperties"].(map[string]any)
		items, _ := at["items"].(map[string]any)
		next, ok := properties[key].(map[string]any)
		for _, each := range []map[string]any{elements, items} {
			if !ok && each != nil {
				next, ok = each, true
			}
		}
		if !ok || !found {
			return nil
		}
		at = next
		all = append(all, at)
	}
	return all
}

// Immutable returns the paths of the fields of a custom resource that a rule of its schema makes immutable: those with
// the rule self == oldSelf, or with self.field == oldSelf.field in the rules of a parent. Rules in other forms, and in lists, are not
// understood.
func (k Kinds) Immutable(kind schema.GroupVersionKind) [][]string {
	_, version := k.definition(kind)
	validation, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	return immutable(nil, validation)
}

func immutable(path []string, of map[string]any) [][]string {
	var found [][]string
	rules, _ := of["x-kubernetes-validations"].([]any)
	equality := regexp.MustCompile(`^\s*self((?:\.\w+)*)\s*==\s*oldSelf((?:\.\w+)*)\s*$|^\s*oldSelf((?:\.\w+)*)\s*==\s*self((?:\.\w+)*)\s*$`)
	for _, each := range rules {
		fields, _ := each.(map[string]any)
		rule, _ := fields["rule"].(string)
		if parts := equality.FindStringSubmatch(rule); parts != nil && parts[1] == parts[2] && parts[3] == parts[4] {
			below := strings.FieldsFunc(parts[1]+parts[3], func(r rune) bool { return r == '.' })
			found = append(found, slices.Concat(path, below))
		}
	}
	properties, _ := of["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		found = append(found, immutable(append(slices.Clone(path), name), property)...)
	}
	return found
}

// OtherVersions returns the other served versions of a kind, and the clientConfig of the conversion webhook. Nil means that the API server
// converts objects by changing only their apiVersion: conversion strategy None.
func (k Kinds) OtherVersions(kind schema.GroupVersionKind) (others []string, converter map[string]any) {
	definition, _ := k.definition(kind)
	if strategy, _, _ := unstructured.NestedString(definition, "spec", "conversion", "strategy"); strategy == "Webhook" {
		if converter, _, _ = unstructured.NestedMap(definition, "spec", "conversion", "webhook", "clientConfig"); converter == nil {
			converter = map[string]any{}
		}
	}
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, each := range versions {
		fields, _ := each.(map[string]any)
		if name, _ := fields["name"].(string); fields["served"] == true && name != kind.Version {
			others = append(others, name)
		}
	}
	return others, converter
}
