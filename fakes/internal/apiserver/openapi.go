package apiserver

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// openapi responds to requests for OpenAPI v3. It has Kubernetes' own types only, without
// descriptions, formats, required fields and the paths of requests.
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

// openapiOf returns the OpenAPI v3 document of kinds, from client-go's schema for server-side apply. That schema does not
// distinguish types of numbers.
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
		types.define(name)
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
func (o openapiTypes) define(name string) {
	if _, ok := o.components[name]; ok {
		return
	}
	o.components[name] = nil // for types that contain themselves
	definition, _ := o.schema.FindNamedType(name)
	o.components[name] = o.of(definition.Atom)
}

// ref returns the schema of a reference to a type.
func (o openapiTypes) ref(to schema.TypeRef) map[string]any {
	if to.NamedType == nil {
		return o.of(to.Inlined)
	}
	o.define(*to.NamedType)
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

// of returns the schema of a type. A type with its own JSON encoding, such as a time or a quantity, has none.
func (o openapiTypes) of(atom schema.Atom) map[string]any {
	switch {
	case atom.Scalar == nil && atom.List != nil:
		return o.list(atom.List)
	case atom.Scalar == nil && atom.Map != nil:
		return o.object(atom.Map)
	case atom.Scalar == nil || *atom.Scalar == schema.Scalar("untyped"):
		return map[string]any{}
	case *atom.Scalar == schema.Numeric:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": string(*atom.Scalar)}
	}
}

func (o openapiTypes) list(list *schema.List) map[string]any {
	made := map[string]any{"type": "array", "items": o.ref(list.ElementType), "x-kubernetes-list-type": "atomic"}
	switch {
	case list.ElementRelationship != schema.Associative:
	case len(list.Keys) == 0:
		made["x-kubernetes-list-type"] = "set"
	default:
		made["x-kubernetes-list-type"], made["x-kubernetes-list-map-keys"] = "map", list.Keys
	}
	return made
}

func (o openapiTypes) object(object *schema.Map) map[string]any {
	made := map[string]any{"type": "object"}
	if object.ElementRelationship == schema.Atomic {
		made["x-kubernetes-map-type"] = "atomic"
	}
	if len(object.Fields) == 0 {
		made["additionalProperties"] = o.ref(object.ElementType)
		return made
	}
	properties := map[string]any{}
	for _, field := range object.Fields {
		property := o.ref(field.Type)
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
