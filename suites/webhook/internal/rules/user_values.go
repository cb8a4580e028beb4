package rules

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// userValueRules returns the rule for fields that the webhook and users can set.
func userValueRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-FIELD-7", Name: "values-of-users-stay", Level: framework.Should,
		Title:  "A field that the webhook sets if it is absent keeps another value that a user gave it. This is about the spec, and about labels and annotations without a prefix in their key, which belong to users.",
		Why:    "What users wrote has no effect, and no message says so. Other fields can need the lost value: a Pod with a request above its new limit is refused.",
		Fix:    "Set the field only if it is absent, or deny other values. If the value is enforced on purpose, name the field in Subject.Enforced.",
		Source: []string{"https://github.com/kubernetes/autoscaler/issues/8401", "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"},
		Check:  checkUserValues,
	}}
}

// setting is a value at a path of keys and indices.
type setting struct {
	path  []string
	value any
}

func checkUserValues(t *check.T) {
	mutating(t)
	eachObject(t, func(c check.Case, d check.Decision) {
		added, _ := settings(t, c.Request.Object, d.Object)
		for _, each := range added {
			if other, ok := another(each); ok && !t.Enforces(each.path) {
				checkUserValue(t, c, setting{each.path, other})
			}
		}
	})
	if !t.HasReached() && !t.Failed() && !t.Over() {
		t.Unsupported("the webhook sets no field in the spec of a sample, and no label or annotation without a prefix, for which another value is known")
	}
}

// checkUserValue sends a case with a value that the webhook would set otherwise. A denial is a decision about it.
func checkUserValue(t *check.T, c check.Case, user setting) {
	r := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) { put(u.Object, user.path, user.value) }))
	if !t.Called(r) {
		return
	}
	d, ok := t.Decide(r)
	if !ok {
		return
	}
	t.Reached()
	_, replaced := settings(t, r.Object, d.Object)
	for _, each := range replaced {
		if slices.Equal(each.path, user.path) {
			t.Errorf("%s with %v at /%s: the webhook replaces it with %v%s", c, user.value, strings.Join(user.path, "/"), each.value, culprit(d))
		}
	}
}

// settings returns the values that a second object has and the first one has not, and those that it has otherwise. The paths are those of
// the first object.
func settings(t *check.T, before, after map[string]any) (added, replaced []setting) {
	was, err := t.Canonical(before)
	is, errAfter := t.Canonical(after)
	if err != nil || errAfter != nil {
		return nil, nil // WH-PROTO-5
	}
	eachSetting(was, is, nil, func(s setting, isNew bool) {
		if isNew {
			added = append(added, s)
		} else {
			replaced = append(replaced, s)
		}
	})
	return added, replaced
}

// eachSetting calls f for each value that differs. Elements of lists are compared by their names: new elements are not values of a user.
func eachSetting(before, after any, path []string, f func(s setting, isNew bool)) {
	switch after := after.(type) {
	case map[string]any:
		was, _ := before.(map[string]any)
		for key, child := range after {
			eachSetting(was[key], child, append(slices.Clone(path), key), f)
		}
	case []any:
		was, _ := before.([]any)
		for _, child := range after {
			if i := slices.IndexFunc(was, func(each any) bool { return identity(each) == identity(child) }); i >= 0 {
				eachSetting(was[i], child, append(slices.Clone(path), strconv.Itoa(i)), f)
			}
		}
	default:
		if !reflect.DeepEqual(before, after) {
			f(setting{path, after}, before == nil)
		}
	}
}

// put sets a value in an object, with the maps above it.
func put(in any, path []string, value any) {
	switch in := in.(type) {
	case map[string]any:
		if len(path) == 1 {
			in[path[0]] = value
			return
		}
		if in[path[0]] == nil {
			in[path[0]] = map[string]any{}
		}
		put(in[path[0]], path[1:], value)
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(in) && len(path) > 1 {
			put(in[i], path[1:], value)
		}
	}
}

// another returns a value that a user could give a field instead. It returns false if none is known, or if the field does not belong to
// users.
func another(of setting) (value any, ok bool) {
	key := of.path[len(of.path)-1]
	isEntry := len(of.path) > 1 && slices.Contains([]string{"labels", "annotations"}, of.path[len(of.path)-2])
	if of.path[0] != "spec" && !isEntry || slices.Contains(of.path, "metadata") && (!isEntry || strings.Contains(key, "/")) {
		return nil, false
	}
	switch value := of.value.(type) {
	case bool:
		return !value, true
	case int64:
		return value + 1, true
	case string:
		other := anotherText(value)
		return other, other != ""
	}
	return nil, false
}

// anotherText returns another value for a text: of the same enumeration, a larger quantity or duration, or another name. Empty means that
// none is known.
func anotherText(text string) string {
	others := map[string]string{
		"Always": "Never", "IfNotPresent": "Always", "Never": "Always", "OnFailure": "Never", "TCP": "UDP", "ClusterFirst": "Default",
		"RuntimeDefault": "Unconfined", "File": "FallbackToLogsOnError", "true": "false", "false": "true",
	}
	switch {
	case others[text] != "":
		return others[text]
	case regexp.MustCompile(`^\d+(\.\d+)?[A-Za-z]*$`).MatchString(text):
		return "1" + text
	case regexp.MustCompile(`^[a-z][a-z0-9.-]*$`).MatchString(text):
		return "contract-user"
	}
	return ""
}
