package rules

import (
	"fmt"
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
		Title:  "An object does not count if it has expired, if its label selector does not match, or if its owner is of another kind.",
		Why:    "A plugin that compares too little of an object takes one that is not meant: a grant that has expired still opens, a policy for other pods refuses, and the pods of a StatefulSet count for the Deployment of the same name.",
		Fix:    "Compare the time of expiry with the current time, evaluate the selector with metav1.LabelSelectorAsSelector, and compare the UID or the kind of an owner, not only its name.",
		Source: []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors", "https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/"},
		Check:  checkDecoys,
	}}
}

// decoy changes the tree of an object so that the object no longer applies to a request.
type decoy struct {
	what string
	// change returns false if the object cannot be changed in this way.
	change func(tree map[string]any) bool
	// surely also changes what every plugin compares. If the object then still counts, the plugin does not
	// compare the field at all, and need not. Nil means that every plugin has to compare it.
	surely func(tree map[string]any) bool
	// concerns reports whether the object applies to a request because of the field. Nil means that it does.
	concerns func(tree map[string]any, request framework.Request) bool
}

// checkDecoys changes objects that matter to a request. If the response stays as it is, they still count.
func checkDecoys(t *check.T) {
	expected := t.SendAll(t.Plugin())
	for _, one := range []decoy{
		{what: "that have expired", change: expire},
		{what: "whose label selectors match nothing", change: matchNothing, concerns: func(tree map[string]any, request framework.Request) bool { return selects(t, tree, request) }},
		{what: "whose owners have the same names but are of another kind", change: func(tree map[string]any) bool { return disown(tree, "kind", "uid") },
			surely: func(tree map[string]any) bool { return disown(tree, "kind", "uid", "name") }},
	} {
		for _, kind := range byKind(t.World().Objects()) {
			checkDecoy(t, expected, kind, one)
		}
	}
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("no object of the World that has a time of expiry, a selector for a request, or an owner makes a difference")
	}
}

func checkDecoy(t *check.T, expected []check.Response, kind []runtime.Object, one decoy) {
	var originals, decoys, strangers []runtime.Object
	for _, object := range kind {
		if changed := changedTree(object, one.change); changed != nil {
			originals, decoys = append(originals, object), append(decoys, changed)
			if one.surely != nil {
				strangers = append(strangers, changedTree(object, one.surely))
			}
		}
	}
	if len(originals) == 0 {
		return
	}
	with := func(instead ...runtime.Object) []check.Response {
		return t.SendAll(t.PluginIn(replaced(t, originals, instead)))
	}
	without := with()
	if sameResponses(expected, without) {
		return // they do not matter
	}
	got := with(decoys...)
	if one.surely != nil && !sameResponses(without, with(strangers...)) {
		return
	}
	for i, request := range t.Requests() {
		if expected[i].Err != nil || got[i].Err != nil || check.Difference(expected[i], without[i]) == "" ||
			one.concerns != nil && !slices.ContainsFunc(originals, func(o runtime.Object) bool { return one.concerns(treeOf(o), request) }) {
			continue
		}
		t.Reached()
		if check.Difference(expected[i], got[i]) == "" && !t.Varies(request, expected[i]) {
			t.Errorf("%s: each %s of the World makes a difference, and %s make the same: %s\nwant: as without them", request, kindOf(kind[0]), one.what, got[i])
		}
	}
}

// replaced returns a World with other objects in place of some.
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

// treeOf returns an object as JSON has it. An object without such a form has an empty tree.
func treeOf(object runtime.Object) map[string]any {
	if loose, ok := object.(*unstructured.Unstructured); ok {
		return loose.DeepCopy().Object
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return map[string]any{}
	}
	return tree
}

// changedTree returns a copy of an object with a changed tree, or nil if it cannot be changed.
func changedTree(object runtime.Object, change func(map[string]any) bool) runtime.Object {
	tree := treeOf(object)
	if !change(tree) {
		return nil
	}
	if _, ok := object.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: tree}
	}
	changed, ok := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(tree, changed) != nil {
		return nil
	}
	return changed
}

// eachField calls f for each field of a tree, except those of the metadata and of templates of other objects.
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
func eachSelector(tree map[string]any, f func(fields map[string]any, name string, selector metav1.LabelSelector)) {
	if _, found, _ := unstructured.NestedFieldNoCopy(tree, "spec", "template"); found {
		return
	}
	eachField(tree, func(fields map[string]any, name string) {
		value, ok := fields[name].(map[string]any)
		if !ok || !strings.HasSuffix(strings.ToLower(name), "selector") {
			return
		}
		var selector metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value, &selector); err == nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			f(fields, name, selector)
		}
	})
}

func matchNothing(tree map[string]any) (changed bool) {
	eachSelector(tree, func(fields map[string]any, name string, _ metav1.LabelSelector) {
		fields[name], changed = map[string]any{"matchLabels": map[string]any{check.ForeignMark: "nothing"}}, true
	})
	return changed
}

// selects reports whether a selector of an object selects an object of a request, also by the labels of its
// namespace.
func selects(t *check.T, tree map[string]any, request framework.Request) (found bool) {
	about := []runtime.Object{request.Object, request.InProcess.OldObject, request.InProcess.Parent}
	for _, object := range t.World().Objects() {
		accessor, err := meta.Accessor(object)
		isNamespace := kindOf(object) == "Namespace" && err == nil && accessor.GetName() == request.Namespace
		if err == nil && (isNamespace || accessor.GetNamespace() == request.Namespace && accessor.GetName() == request.Name) {
			about = append(about, object)
		}
	}
	eachSelector(tree, func(_ map[string]any, _ string, each metav1.LabelSelector) {
		selector, err := metav1.LabelSelectorAsSelector(&each)
		for _, object := range about {
			accessor, wrong := meta.Accessor(object)
			found = found || err == nil && wrong == nil && selector.Matches(labels.Set(accessor.GetLabels()))
		}
	})
	return found
}

// disown changes fields of the owner references.
func disown(tree map[string]any, fields ...string) bool {
	owners, _, _ := unstructured.NestedSlice(tree, "metadata", "ownerReferences")
	for _, each := range owners {
		owner, _ := each.(map[string]any)
		for _, field := range fields {
			owner[field] = fmt.Sprint(owner[field], "Other")
		}
	}
	return len(owners) > 0 && unstructured.SetNestedSlice(tree, owners, "metadata", "ownerReferences") == nil
}

// crowded returns a World with two altered copies of each object in its namespace, or of each cluster-scoped
// object. Their names are the first and the last ones, and their ages differ.
func crowded(t *check.T) *fakes.World {
	w := t.World()
	for i, object := range w.Objects() {
		for k, prefix := range []string{"aaa-", "zzz-"} {
			if accessor, err := meta.Accessor(object); err == nil {
				other := alteredIn(accessor.GetNamespace(), object)
				accessor, _ = meta.Accessor(other)
				accessor.SetName(prefix + accessor.GetName())
				accessor.SetCreationTimestamp(metav1.Date(2001, 1, 1, 2*i+k, 0, 0, 0, time.UTC))
				w.Put(other)
			}
		}
	}
	return w
}
