package apiserver

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// openapi responds to requests for OpenAPI v3. It has Kubernetes' own types only, without
// descriptions, required fields and the paths of requests.
// See https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-interface-definition
func (r *Request) openapi(parts []string) (reply, error) {
	if len(parts) == 2 {
		paths := map[string]any{}
		for _, gv := range r.server.Kinds.Versions() {
			if path := openapiPath(gv); len(r.builtins(gv)) > 0 {
				paths[path] = map[string]string{"serverRelativeURL": "/openapi/v3/" + path}
			}
		}
		return jsonReply(http.StatusOK, map[string]any{"paths": paths})
	}
	for _, gv := range r.server.Kinds.Versions() {
		if builtins := r.builtins(gv); len(builtins) > 0 && openapiPath(gv) == strings.Join(parts[2:], "/") {
			document, err := openapiOf(r.server.Kinds.Builtin(), builtins)
			if err != nil {
				return reply{}, err
			}
			return jsonReply(http.StatusOK, document)
		}
	}
	return r.unknownPath(), nil
}

func openapiPath(gv apischema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// builtins returns Kubernetes' own kinds of a group and version.
func (r *Request) builtins(gv apischema.GroupVersion) []*kinds.Kind {
	var found []*kinds.Kind
	for _, k := range r.server.Kinds.Served(gv) {
		if k.Scheme == r.server.Kinds.Builtin() {
			found = append(found, k)
		}
	}
	return found
}

// openapiOf returns the OpenAPI v3 document of kinds. The structure of the types and the keys of
// lists come from client-go's schema for server-side apply. That schema does not distinguish types
// of numbers, so these come from the Go types.
func openapiOf(scheme *runtime.Scheme, of []*kinds.Kind) (map[string]any, error) {
	converter := applyconfigurations.NewTypeConverter(scheme)
	types := openapiTypes{components: map[string]any{}}
	for _, k := range of {
		stub := &unstructured.Unstructured{}
		stub.SetGroupVersionKind(k.GVK)
		typed, err := converter.ObjectToTyped(stub)
		if err != nil || typed.TypeRef().NamedType == nil {
			continue // a kind that no server applies, such as a review
		}
		types.schema = typed.Schema()
		name := *typed.TypeRef().NamedType
		types.define(name, k.Type)
		defined, ok := types.components[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("make OpenAPI of %s: type %s has no schema", k.GVK, name)
		}
		defined["x-kubernetes-group-version-kind"] = []any{map[string]string{"group": k.GVK.Group, "version": k.GVK.Version, "kind": k.GVK.Kind}}
	}
	return map[string]any{
		"openapi": "3.0.0", "info": map[string]string{"title": "Kubernetes", "version": "unversioned"}, "paths": map[string]any{},
		"components": map[string]any{"schemas": types.components},
	}, nil
}

// openapiTypes makes the components of a document.
type openapiTypes struct {
	schema     *schema.Schema
	components map[string]any
}

// define adds a named type to the document, unless the document has it already.
func (o openapiTypes) define(name string, t reflect.Type) {
	if _, ok := o.components[name]; ok {
		return
	}
	o.components[name] = nil // for types that contain themselves
	definition, _ := o.schema.FindNamedType(name)
	o.components[name] = o.of(definition.Atom, t)
}

// ref returns the schema of a reference to a type.
func (o openapiTypes) ref(to schema.TypeRef, t reflect.Type) map[string]any {
	if to.NamedType == nil {
		return o.of(to.Inlined, t)
	}
	o.define(*to.NamedType, t)
	ref := map[string]any{"$ref": "#/components/schemas/" + *to.NamedType}
	if to.ElementRelationship == nil {
		return ref
	}
	relation := "granular"
	if *to.ElementRelationship == schema.Atomic {
		relation = "atomic"
	}
	return map[string]any{"allOf": []any{ref}, "x-kubernetes-map-type": relation}
}

// of returns the schema of a type.
func (o openapiTypes) of(atom schema.Atom, t reflect.Type) map[string]any {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch special := openapiSpecial(t); {
	case special != nil:
		return special
	case atom.List != nil && atom.Scalar == nil:
		return o.list(atom.List, t)
	case atom.Map != nil && atom.Scalar == nil:
		return o.object(atom.Map, t)
	default:
		return openapiScalar(t)
	}
}

func (o openapiTypes) list(list *schema.List, t reflect.Type) map[string]any {
	made := map[string]any{"type": "array", "items": o.ref(list.ElementType, element(t)), "x-kubernetes-list-type": "atomic"}
	switch {
	case list.ElementRelationship != schema.Associative:
	case len(list.Keys) == 0:
		made["x-kubernetes-list-type"] = "set"
	default:
		made["x-kubernetes-list-type"], made["x-kubernetes-list-map-keys"] = "map", list.Keys
	}
	return made
}

func (o openapiTypes) object(object *schema.Map, t reflect.Type) map[string]any {
	made := map[string]any{"type": "object"}
	if object.ElementRelationship == schema.Atomic {
		made["x-kubernetes-map-type"] = "atomic"
	}
	if len(object.Fields) == 0 {
		made["additionalProperties"] = o.ref(object.ElementType, element(t))
		return made
	}
	goFields := map[string]reflect.Type{}
	for _, field := range fieldsOfStruct(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		goFields[name] = field.Type
	}
	properties := map[string]any{}
	for _, field := range object.Fields {
		property := o.ref(field.Type, goFields[field.Name])
		if field.Default != nil && property["$ref"] != nil {
			property = map[string]any{"allOf": []any{property}}
		}
		if field.Default != nil {
			property["default"] = openapiDefault(field.Default)
		}
		properties[field.Name] = property
	}
	made["properties"] = properties
	return made
}

// openapiDefault returns a default as JSON encodes it: client-go's schema is parsed YAML.
func openapiDefault(value any) any {
	tree, ok := value.(map[any]any)
	if !ok {
		return value
	}
	made := map[string]any{}
	for key, inner := range tree {
		made[fmt.Sprint(key)] = openapiDefault(inner)
	}
	return made
}

// fieldsOfStruct returns the fields of a struct, with the fields of embedded structs.
func fieldsOfStruct(t reflect.Type) []reflect.StructField {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return reflect.VisibleFields(t)
}

// element returns the type of the elements of a list or map, or nil.
func element(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
		return nil
	}
	return t.Elem()
}

// openapiSpecial returns the schema of a type with a custom JSON encoding, such as a time or
// quantity. Nil for other types.
func openapiSpecial(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"oneOf": []any{map[string]string{"type": "string"}, map[string]string{"type": "number"}}}
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"format": "int-or-string", "oneOf": []any{map[string]string{"type": "integer"}, map[string]string{"type": "string"}}}
	case reflect.TypeFor[metav1.Duration]():
		return map[string]any{"type": "string"}
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object", "x-kubernetes-map-type": "atomic"}
	default:
		return nil
	}
}

func openapiScalar(t reflect.Type) map[string]any {
	if t == nil {
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Uint16, reflect.Int8, reflect.Uint8:
		return map[string]any{"type": "integer", "format": "int32"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number", "format": "double"}
	case reflect.Slice: // of bytes
		return map[string]any{"type": "string", "format": "byte"}
	default:
		return map[string]any{}
	}
}
