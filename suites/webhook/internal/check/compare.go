package check

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/review"
)

// Canonical returns an object in the form in which objects are compared: decoded, without empty and volatile fields, and without
// managedFields.
func (t *T) Canonical(fields map[string]any) (map[string]any, error) {
	if fields == nil {
		return nil, nil
	}
	decoded, err := review.Decoded(fields)
	if err != nil {
		return nil, err
	}
	decoded = (&unstructured.Unstructured{Object: decoded}).DeepCopy().Object
	unstructured.RemoveNestedField(decoded, "metadata", "managedFields")
	for _, pointer := range t.Volatile {
		remove(decoded, Segments(pointer))
	}
	result, _ := pruned(decoded).(map[string]any)
	return result, nil
}

// Segments returns the keys and indices of a JSON pointer.
func Segments(pointer string) []string {
	segments := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, each := range segments {
		segments[i] = strings.ReplaceAll(strings.ReplaceAll(each, "~1", "/"), "~0", "~")
	}
	return segments
}

// Enforces reports whether the webhooks set a field whatever a user wrote. The path has keys, and the names of elements of lists.
func (t *T) Enforces(path []string) bool {
	return slices.ContainsFunc(t.Enforced, func(pointer string) bool {
		of := Segments(pointer)
		return len(of) <= len(path) && slices.EqualFunc(of, path[:len(of)], func(want, got string) bool { return want == "*" || want == got })
	})
}

// remove removes the values that a path leads to. A * is any key or index.
func remove(value any, path []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			switch {
			case path[0] != key && path[0] != "*":
			case len(path) == 1:
				delete(value, key)
			default:
				remove(child, path[1:])
			}
		}
	case []any:
		for i, child := range value {
			if len(path) > 1 && (path[0] == "*" || path[0] == strconv.Itoa(i)) {
				remove(child, path[1:])
			}
		}
	}
}

// pruned returns a value without empty fields, or nil if the value is empty.
func pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, child := range value {
			if child = pruned(child); child != nil {
				kept[key] = child
			}
		}
		if len(kept) > 0 {
			return kept
		}
		return nil
	case []any:
		var kept []any
		for _, child := range value {
			if smaller := pruned(child); smaller != nil {
				child = smaller
			}
			kept = append(kept, child)
		}
		if len(kept) > 0 {
			return kept
		}
		return nil
	case string:
		if value == "" {
			return nil
		}
	}
	return value
}
