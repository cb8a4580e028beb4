package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// Lost returns the paths of what the object of the request has, and the object in the response does not have any more,
// or has in another order, because of the policies: fields, entries of maps, and elements of lists. Values that changed
// are not lost.
func (c *Case) Lost() []cel.Path {
	sent, ok := c.Request.Object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	object := vary.OfClient(sent.Object)
	without := lost(object, vary.OfClient(c.Before.Fields()), nil)
	return slices.DeleteFunc(lost(object, vary.OfClient(c.After.Fields()), nil), func(path cel.Path) bool {
		return slices.ContainsFunc(without, func(p cel.Path) bool { return slices.Equal(p, path) }) // the API server dropped it
	})
}

func lost(object, later any, at cel.Path) []cel.Path {
	var all []cel.Path
	switch object := object.(type) {
	case map[string]any:
		others, _ := later.(map[string]any)
		for key, value := range object {
			path := append(slices.Clone(at), key)
			if other, found := others[key]; found {
				all = append(all, lost(value, other, path)...)
			} else {
				all = append(all, path)
			}
		}
	case []any:
		others, _ := later.([]any)
		next := 0
		for i, item := range object {
			path := append(slices.Clone(at), i)
			found := next + slices.IndexFunc(others[next:], func(other any) bool { return sameElement(item, other) })
			if found < next {
				if i < next || !changedElement(object, others, i) {
					all = append(all, path)
					continue
				}
				found = i
			}
			all = append(all, lost(item, others[found], path)...)
			next = found + 1
		}
	}
	return all
}

// sameElement reports whether an element of a list is a later version of another one: it has the same name, or
// everything that the other one has.
func sameElement(item, later any) bool {
	fields, isMap := item.(map[string]any)
	others, isOther := later.(map[string]any)
	if !isMap || !isOther {
		return equality.Semantic.DeepEqual(item, later)
	}
	if name, ok := fields["name"].(string); ok {
		return others["name"] == name
	}
	for key, value := range fields {
		if _, isMap := value.(map[string]any); isMap {
			continue
		}
		if _, isList := value.([]any); !isList && !equality.Semantic.DeepEqual(value, others[key]) {
			return false
		}
	}
	return true
}

// changedElement reports whether only values of an element of a list were changed: the list has as many elements later, the element
// has no name, and none was moved to its place.
func changedElement(list, later []any, i int) bool {
	if len(list) != len(later) {
		return false
	}
	fields, isMap := list[i].(map[string]any)
	_, isOther := later[i].(map[string]any)
	for j, item := range list {
		if sameElement(item, later[i]) && !sameElement(item, later[j]) {
			return false
		}
	}
	return isMap && isOther && !named(fields)
}

// foreign creates a sample with metadata that other clients write: a label and an annotation with a slash in their
// keys, and a finalizer.
func (b *bench) foreign(s sample) {
	if !b.subject.mutating() {
		return
	}
	varied := s.Object
	for _, in := range []string{"labels", "annotations"} {
		varied = withEntry(varied, cel.Path{"metadata", in, "contract.admissiontest.dev/other"}, "kept")
	}
	u := b.addressed(varied)
	u.SetFinalizers(append(u.GetFinalizers(), finalizer))
	b.derive(Foreign, s, u.Object, "with a label, an annotation and a finalizer of another client")
}

// Drift returns the paths at which the response to a second apply differs from the first one, unless it has there what the
// manifest says: then the first one was wrong, and not the second.
func (c *Case) Drift() []cel.Path {
	sent, _ := c.Request.Object.(*unstructured.Unstructured)
	first, second := c.Control.After.Fields(), c.After.Fields()
	return slices.DeleteFunc(vary.Differences(first, second), func(path cel.Path) bool { return sent != nil && carries(second, sent.Object, []cel.Path{path}) })
}
