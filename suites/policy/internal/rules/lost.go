package rules

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
// has no name and the same key, and none was moved to its place.
func changedElement(list, later []any, i int) bool {
	if len(list) != len(later) {
		return false
	}
	fields, isMap := list[i].(map[string]any)
	other, isOther := later[i].(map[string]any)
	for j, item := range list {
		if sameElement(item, later[i]) && !sameElement(item, later[j]) {
			return false
		}
	}
	return isMap && isOther && !named(fields) && fields["key"] == other["key"]
}

// foreign creates a sample with metadata that other clients write: a label and an annotation with a slash in their
// keys, and a finalizer.
func (b *bench) foreign(s sample) {
	if !b.subject.mutating() {
		return
	}
	other := "contract.admissiontest.dev/other"
	u := b.addressed(vary.Put(vary.Put(s.Object, cel.Path{"metadata", "labels", other}, "kept"), cel.Path{"metadata", "annotations", other}, "kept"))
	u.SetFinalizers(append(u.GetFinalizers(), finalizer))
	b.derive(Foreign, s, u.Object, "with a label, an annotation and a finalizer of another client")
}

// entries puts entries of other clients into the lists of good samples that the policies change.
func (b *bench) entries(ctx context.Context) error {
	n := len(b.observed.Cases)
	for _, s := range b.samples {
		if c := b.sampleCase(s); s.good >= 0 && !s.Deleted && b.subject.mutating() && c.Accepted() && c.After.Allowed() {
			b.foreignEntries(s, c)
			b.inertElements(s, c)
		}
	}
	for _, c := range b.observed.Cases[n:] {
		c.Before.Status.Code = http.StatusOK // withoutPolicies sends it without them
	}
	return b.send(ctx, b.observed.Cases[n:], after)
}

// foreignEntries puts an entry of another client into each list to which the policies add something.
func (b *bench) foreignEntries(s sample, c *Case) {
	with, without := vary.OfClient(c.After.Fields()), vary.OfClient(c.Before.Fields())
	for _, path := range vary.Paths(with, nil) {
		items, _ := valueAt[[]any](with, path)
		fewer, _ := valueAt[[]any](without, path)
		added := slices.IndexFunc(items, func(item any) bool {
			return !slices.ContainsFunc(fewer, func(other any) bool { return sameElement(other, item) })
		})
		if added < 0 || ofAnother(items[added]) == nil {
			continue
		}
		b.derive(Foreign, s, prepended(s.Object, path, ofAnother(items[added])), "with an entry of another client in "+path.String())
	}
}

// inertElements puts elements with another text before each named one of a list in which the policies change the text.
func (b *bench) inertElements(s sample, c *Case) {
	for _, path := range c.Changed(c.Before, c.After, false) {
		text, isText := valueAt[string](s.Object, path)
		i := slices.IndexFunc(path, func(step any) bool { _, isIndex := step.(int); return isIndex })
		if isText && i > 0 && path[len(path)-1] != "name" {
			for _, other := range []string{inertName, text + "-" + inertName} {
				b.inertElement(s, c, path, i, other)
			}
		}
	}
}

// inertName is the name of an element beside one that the policies change.
const inertName = "contract-inert"

// inertElement puts a copy of an element with another text at a path before the elements of the list. Its index is a step of the path.
func (b *bench) inertElement(s sample, c *Case, path cel.Path, index int, other string) {
	list, element := path[:index], path[:index+1]
	changed, _ := valueAt[map[string]any](s.Object, element)
	name, _ := changed["name"].(string)
	inert, _ := vary.At(vary.Put(s.Object, path, other), element)
	if inert = withName(inert, inertName); name == "" {
		return
	}
	alone := b.derive(Controls, s, vary.Put(s.Object, list, []any{inert}), fmt.Sprintf("with only an element with %s in %s", other, list))
	both := b.derive(Inert, s, prepended(s.Object, list, inert), fmt.Sprintf("with an element with %s in front of %s", other, list))
	of := func(c *Case, name string) any { // the text of the element with a name
		items, _ := valueAt[[]any](c.After.Fields(), list)
		at := slices.IndexFunc(items, func(item any) bool { fields, _ := item.(map[string]any); return fields["name"] == name })
		value, _ := vary.At(c.After.Fields(), slices.Concat(list.Then(at), path[index+1:]))
		return value
	}
	both.needs = []need{func() string {
		if !both.After.Allowed() || !alone.After.Allowed() || of(alone, inertName) != other {
			return "the policies do not leave the other element alone"
		}
		return ""
	}}
	both.wrong = func() string {
		switch want := of(c, name); {
		case of(both, inertName) != other:
			return fmt.Sprintf("the policies change the element that they leave alone when it is the only one, to %v", of(both, inertName))
		case of(both, name) != want:
			return fmt.Sprintf("%s is %v; without the element before it %v", path, of(both, name), want)
		}
		return ""
	}
}

// prepended returns a copy of an object with an entry at the beginning of a list.
func prepended(object map[string]any, list cel.Path, entry any) map[string]any {
	return vary.With(object, list, func(old any) (any, bool) {
		own, _ := old.([]any)
		return append([]any{entry}, own...), true
	})
}

// valueAt returns the value of a type at a path.
func valueAt[T any](object map[string]any, path cel.Path) (value T, is bool) {
	found, _ := vary.At(object, path)
	value, is = found.(T)
	return value, is
}

// ofAnother returns an entry of a list as another client would write it: with another name or key, and without lists, to which an admission
// plugin may have added what only this object has. It is nil if it has none.
func ofAnother(entry any) any {
	switch copied := runtime.DeepCopyJSONValue(entry).(type) {
	case string:
		return "contract-" + copied
	case map[string]any:
		maps.DeleteFunc(copied, func(_ string, value any) bool { _, isList := value.([]any); return isList })
		for _, key := range []string{"name", "key"} {
			if _, has := copied[key].(string); has {
				copied[key] = "contract-other"
				return copied
			}
		}
	}
	return nil
}

// Drift returns the paths at which the response to a second apply differs from the first one, unless it has there what the
// manifest says: then the first one was wrong, and not the second.
func (c *Case) Drift() []cel.Path {
	sent, _ := c.Request.Object.(*unstructured.Unstructured)
	first, second := c.Control.After.Fields(), c.After.Fields()
	return slices.DeleteFunc(vary.Differences(first, second), func(path cel.Path) bool { return sent != nil && carries(second, sent.Object, []cel.Path{path}) })
}
