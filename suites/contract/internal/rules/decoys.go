package rules

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// decoyRules returns the rule for objects of the World that must not count.
func decoyRules() []check.Rule {
	return []check.Rule{{
		ID: "W1", Name: "objects-that-do-not-apply-do-not-count", Level: framework.Should,
		Title:  "An object does not count if it has expired, or if its label selector does not match.",
		Why:    "A plugin that looks only whether an object exists takes one that is not meant: a grant that has expired still opens, and a policy for other pods refuses.",
		Fix:    "Compare the time of expiry with the current time, and evaluate the selector with metav1.LabelSelectorAsSelector.",
		Source: []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors", "https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#LabelSelectorAsSelector"},
		Check:  checkDecoys,
	}}
}

// checkDecoys changes objects that matter to a request so that they no longer apply. If the response stays as it is,
// they still count. Any other response is good: that an object has expired can have its own error.
func checkDecoys(t *check.T) {
	expected := t.SendAll(t.Plugin())
	always := func(*check.T, runtime.Object, framework.Request) bool { return true }
	for _, kind := range byKind(t.World().Objects()) {
		decoy{"that has expired", expire, always}.check(t, expected, kind)
		decoy{"whose selector matches nothing", matchNothing, selects}.check(t, expected, kind)
	}
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("no object of the World that has a time of expiry, or a selector for a request, makes a difference")
	}
}

// decoy is a change of an object after which it no longer applies.
type decoy struct {
	what   string
	change func(map[string]any) bool
	// applies reports whether an object applied to a request before.
	applies func(*check.T, runtime.Object, framework.Request) bool
}

// check changes objects of one kind.
func (d decoy) check(t *check.T, expected []check.Response, kind []runtime.Object) {
	var originals, decoys []runtime.Object
	for _, object := range kind {
		if tree := treeOf(object); d.change(tree) {
			originals, decoys = append(originals, object), append(decoys, withTree(object, tree))
		}
	}
	if len(originals) == 0 {
		return
	}
	without := t.SendAll(t.PluginIn(replaced(t, originals, nil)))
	if sameResponses(expected, without) {
		return // they do not matter
	}
	got := t.SendAll(t.PluginIn(replaced(t, originals, decoys)))
	for i, request := range t.Requests() {
		applied := func(object runtime.Object) bool { return d.applies(t, object, request) }
		if expected[i].Err != nil || check.Difference(expected[i], without[i]) == "" || !slices.ContainsFunc(originals, applied) {
			continue
		}
		t.Reached()
		if check.Difference(expected[i], got[i]) == "" && !t.Varies(request, expected[i]) {
			t.Errorf("%s: %s, and the same with each %s %s\nwant: the response without it: %s", request, got[i], kindOf(kind[0]), d.what, without[i])
		}
	}
}

// treeOf returns an object as JSON has it. An object without such a form has an empty tree.
func treeOf(object runtime.Object) map[string]any {
	tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(check.Copy(object))
	return tree
}

// withTree returns an object of the same type as another one.
func withTree(object runtime.Object, tree map[string]any) runtime.Object {
	if _, ok := object.(*unstructured.Unstructured); ok {
		return (&unstructured.Unstructured{Object: tree}).DeepCopy()
	}
	changed := check.Copy(object)
	reflect.ValueOf(changed).Elem().SetZero()
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(tree, changed) // the tree has only what it had before, of the same types
	return changed
}

// eachField calls f for each field of a tree, except fields of the metadata and of templates of other objects.
func eachField(tree any, f func(fields map[string]any, name string)) {
	switch value := tree.(type) {
	case map[string]any:
		for name, inner := range value {
			if name != "metadata" && name != "template" {
				f(value, name)
				eachField(inner, f)
			}
		}
	case []any:
		for _, inner := range value {
			eachField(inner, f)
		}
	}
}

// expire sets times of expiry that are in the future to the past.
func expire(tree map[string]any) (changed bool) {
	named := regexp.MustCompile(`(?i)^(expir|notAfter|validUntil)`)
	eachField(tree, func(fields map[string]any, name string) {
		text, _ := fields[name].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && named.MatchString(name) && at.After(time.Now()) {
			fields[name], changed = "2000-01-01T00:00:00Z", true
		}
	})
	return changed
}

// eachSelector calls f for each label selector in a tree. The selector of an object with a template is about what
// the object makes.
func eachSelector(tree map[string]any, f func(fields map[string]any, name string, selector labels.Selector)) {
	_, makes, _ := unstructured.NestedFieldNoCopy(tree, "spec", "template")
	eachField(tree, func(fields map[string]any, name string) {
		value, _ := fields[name].(map[string]any)
		var read metav1.LabelSelector
		if makes || !strings.HasSuffix(strings.ToLower(name), "selector") || runtime.DefaultUnstructuredConverter.FromUnstructured(value, &read) != nil {
			return
		}
		if selector, err := metav1.LabelSelectorAsSelector(&read); err == nil && !selector.Empty() {
			f(fields, name, selector)
		}
	})
}

func matchNothing(tree map[string]any) (changed bool) {
	eachSelector(tree, func(fields map[string]any, name string, _ labels.Selector) {
		fields[name], changed = map[string]any{"matchLabels": map[string]any{check.ForeignMark: "nothing"}}, true
	})
	return changed
}

// selects reports whether a selector of an object selects an object of a request, or its namespace.
func selects(t *check.T, object runtime.Object, request framework.Request) (found bool) {
	about := append(t.World().Objects(), request.Object, request.InProcess.OldObject, request.InProcess.Parent)
	for i, each := range about {
		accessor, err := meta.Accessor(each)
		stored := i < len(about)-3
		if err != nil || stored && (accessor.GetName() != request.Name || accessor.GetNamespace() != request.Namespace) &&
			(accessor.GetName() != request.Namespace || kindOf(each) != "Namespace") {
			continue
		}
		eachSelector(treeOf(object), func(_ map[string]any, _ string, selector labels.Selector) {
			found = found || selector.Matches(labels.Set(accessor.GetLabels()))
		})
	}
	return found
}

// replaced returns a World with other objects instead of some.
func replaced(t *check.T, originals, instead []runtime.Object) *fakes.World {
	w := t.World()
	w.Delete(originals...)
	w.Put(instead...)
	return w
}

// byKind groups objects by their Go type and kind.
func byKind(objects []runtime.Object) (groups [][]runtime.Object) {
	index := map[string]int{}
	for _, object := range objects {
		key := fmt.Sprintf("%T %s", object, object.GetObjectKind().GroupVersionKind())
		if _, ok := index[key]; !ok {
			index[key] = len(groups)
			groups = append(groups, nil)
		}
		groups[index[key]] = append(groups[index[key]], object)
	}
	return groups
}

func kindOf(object runtime.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(object).Elem().Name()
}

// crowded returns a World with two other objects for each object, in the same namespace. Their names are the first and
// the last ones, and their ages differ.
func crowded(t *check.T) *fakes.World {
	w := t.World()
	for i, object := range w.Objects() {
		tree, ok := otherwise(treeOf(object)).(map[string]any)
		for k, prefix := range []string{"aaa-", "zzz-"} {
			other := withTree(object, tree)
			if accessor, err := meta.Accessor(other); err == nil && ok {
				accessor.SetName(prefix + accessor.GetName())
				accessor.SetUID("")
				accessor.SetCreationTimestamp(metav1.Date(2001, 1, 1, 2*i+k, 0, 0, 0, time.UTC))
				w.Put(other)
			}
		}
	}
	return w
}

// otherwise returns another value that an API server would accept, too: it changes neither metadata nor what looks like
// a constant, a time or a quantity.
func otherwise(value any) any {
	switch value := value.(type) {
	case map[string]any:
		other := maps.Clone(value)
		for name, inner := range value {
			if name != "metadata" && name != "apiVersion" {
				other[name] = otherwise(inner)
			}
		}
		return other
	case []any:
		other := slices.Clone(value)
		for i := range other {
			other[i] = otherwise(other[i])
		}
		return other
	case string:
		if regexp.MustCompile(`^[a-z][a-z0-9./-]*$`).MatchString(value) {
			return value + "-other"
		}
	case int64:
		return value + 1
	case bool:
		return !value
	}
	return value
}
