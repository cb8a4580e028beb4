package kinds

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MissingInDocument returns the first field of a path that a kind does not have according to an OpenAPI v3 document
// of an API server, which is decoded JSON, or nil. Known is false if the document does not have the kind.
func MissingInDocument(document map[string]any, kind schema.GroupVersionKind, path []any) (missing *Missing, known bool) {
	d, one := schemaOf(document, kind)
	if one == nil {
		return nil, false
	}
	return d.missing(one, path), true
}

// ListsBeside returns the names of the other lists in the object that has a list of a kind, whose items can have all
// fields of an item: initContainers and ephemeralContainers for spec.containers.
func ListsBeside(document map[string]any, kind schema.GroupVersionKind, list []any, item map[string]any) []string {
	d, at := schemaAt(document, kind, list[:len(list)-1])
	properties, _ := d.resolve(at)["properties"].(map[string]any)
	var found []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field, _ := properties[name].(map[string]any)
		items, isList := d.resolve(field)["items"].(map[string]any)
		has, _ := d.resolve(items)["properties"].(map[string]any)
		lacks := func(field string) bool { return has[field] == nil }
		if isList && name != list[len(list)-1] && !slices.ContainsFunc(slices.Collect(maps.Keys(item)), lacks) {
			found = append(found, name)
		}
	}
	return found
}

// Subresources returns the names of the subresources of a kind that can be read and replaced according to an OpenAPI v3
// document, sorted: ephemeralcontainers, resize and status for a Pod.
func Subresources(document map[string]any, kind schema.GroupVersionKind) []string {
	paths, _ := document["paths"].(map[string]any)
	action := func(path, method, action string) (operation map[string]any, ok bool) {
		operations, _ := paths[path].(map[string]any)
		operation, _ = operations[method].(map[string]any)
		return operation, operation["x-kubernetes-action"] == action
	}
	var found []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		object, subresource, is := strings.Cut(path, "/{name}/")
		if !is {
			continue
		}
		of, _ := action(object+"/{name}", "get", "get")
		_, reads := action(path, "get", "get")
		_, replaces := action(path, "put", "put")
		if reads && replaces && isOf(map[string]any{kindsExtension: []any{of[kindsExtension]}}, kind) && !slices.Contains(found, subresource) {
			found = append(found, subresource)
		}
	}
	return found
}

// kindsExtension has the kinds of a schema, or the kind of an operation.
const kindsExtension = "x-kubernetes-group-version-kind"

// schemaOf returns the schema of a kind in a document, or nil.
func schemaOf(document map[string]any, kind schema.GroupVersionKind) (d openAPI, one map[string]any) {
	components, _ := document["components"].(map[string]any)
	d.schemas, _ = components["schemas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(d.schemas)) {
		if one, _ := d.schemas[name].(map[string]any); isOf(one, kind) {
			return d, one
		}
	}
	return d, nil
}

// isOf reports whether a schema is that of a kind.
func isOf(one map[string]any, kind schema.GroupVersionKind) bool {
	kinds, _ := one[kindsExtension].([]any)
	return slices.ContainsFunc(kinds, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["group"] == kind.Group && fields["version"] == kind.Version && fields["kind"] == kind.Kind
	})
}

// openAPI has the schemas of a document, by name.
type openAPI struct{ schemas map[string]any }

func (d openAPI) missing(at map[string]any, path []any) *Missing {
	for i, step := range path {
		at = d.resolve(at)
		name, isName := step.(string)
		next := below(at, step)
		properties, _ := at["properties"].(map[string]any)
		switch {
		case properties[name] == nil && (at["x-kubernetes-preserve-unknown-fields"] == true || at["additionalProperties"] == true):
			return nil
		case next != nil:
			at = next
		case !isName:
			return nil // a list never matches a value that is none
		case len(properties) == 0 && at["items"] == nil && !isScalar(at):
			return nil // the schema does not say which fields there are
		default:
			return &Missing{i, slices.Sorted(maps.Keys(properties))}
		}
	}
	return nil
}

// below returns the schema of a field, or of an item for an index, of the values of a schema; nil if there is none.
func below(at map[string]any, step any) map[string]any {
	properties, _ := at["properties"].(map[string]any)
	name, isName := step.(string)
	next, _ := properties[name].(map[string]any)
	if items, isList := at["items"].(map[string]any); isList && !isName {
		next = items
	}
	if next == nil {
		next, _ = at["additionalProperties"].(map[string]any)
	}
	return next
}

// resolve follows references: a field with a default has its schema in allOf.
func (d openAPI) resolve(at map[string]any) map[string]any {
	const deepest = 100
	for range deepest {
		if all, _ := at["allOf"].([]any); len(all) == 1 && at["properties"] == nil {
			at, _ = all[0].(map[string]any)
			continue
		}
		reference, ok := at["$ref"].(string)
		if !ok {
			break
		}
		at, _ = d.schemas[strings.TrimPrefix(reference, "#/components/schemas/")].(map[string]any)
	}
	return at
}

func isScalar(at map[string]any) bool {
	return slices.Contains([]any{"string", "integer", "number", "boolean"}, at["type"])
}

// TypeAt returns the name of the schema that a value of a kind has in a document, such as
// io.k8s.apimachinery.pkg.api.resource.Quantity, or "" if the schema has no name or is not known.
func TypeAt(document map[string]any, kind schema.GroupVersionKind, path []any) string {
	_, at := schemaAt(document, kind, path)
	if all, _ := at["allOf"].([]any); len(all) == 1 {
		at, _ = all[0].(map[string]any)
	}
	reference, _ := at["$ref"].(string)
	return strings.TrimPrefix(reference, "#/components/schemas/")
}

// SchemaAt returns the schema that a value of a kind has in a document, without a reference, or nil if it is not known.
func SchemaAt(document map[string]any, kind schema.GroupVersionKind, path []any) map[string]any {
	d, at := schemaAt(document, kind, path)
	return d.resolve(at)
}

func schemaAt(document map[string]any, kind schema.GroupVersionKind, path []any) (openAPI, map[string]any) {
	d, at := schemaOf(document, kind)
	for _, step := range path {
		at = below(d.resolve(at), step)
	}
	return d, at
}
