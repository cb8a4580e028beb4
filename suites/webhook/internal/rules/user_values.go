package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// userValueRules returns the rule for fields that the webhook and users can set.
func userValueRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-FIELD-7", Name: "values-of-users-stay", Level: framework.Should,
		Title:  "A value that a user gave a field is kept, also if the webhook sets the field when it is absent. This is about the spec, and about labels and annotations without a prefix in their key, which belong to users.",
		Why:    "What users wrote has no effect, and no message says so. Other fields can need the lost value: a Pod with a request above its new limit is refused.",
		Fix:    "Set the field only if it is absent, or deny other values. If the value is enforced on purpose, name the field in Subject.Enforced.",
		Source: []string{"https://github.com/kubernetes/autoscaler/issues/8401", "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"},
		Check:  checkUserValues,
	}}
}

func checkUserValues(t *check.T) {
	mutating(t)
	eachObject(t, func(c check.Case, d check.Decision) {
		before, err := t.Canonical(c.Request.Object)
		after, errAfter := t.Canonical(d.Object)
		if err != nil || errAfter != nil {
			return // WH-PROTO-5
		}
		eachValue(after, nil, func(path []string, value any) {
			if !ofUsers(path) || valueAt(before, path) != nil || t.Enforces(path) {
				return
			}
			if other := another(value); other != nil {
				checkUserValue(t, c, path, other)
			}
			if _, isNumber := value.(int64); isNumber && value != int64(0) && canBeZero(t, c, path) {
				checkUserValue(t, c, path, int64(0))
			}
		})
		eachValue(before, nil, func(path []string, value any) {
			is := valueAt(after, path)
			if !ofUsers(path) || valueAt(before, path) != value || is == nil || t.Enforces(path) || means(path, value, is) {
				return
			}
			t.Reached()
			t.Errorf("%s: the webhook replaces %v at /%s with %v%s", c, value, strings.Join(path, "/"), is, culprit(d))
		})
	})
	if !t.HasReached() && !t.Failed() && !t.Over() {
		t.Unsupported("the webhook sets no field in the spec of a sample, and no label or annotation without a prefix, for which another value is known")
	}
}

// means reports whether a value means what a user wrote: it is encoded otherwise, or is an image of the same name, in a mirror or by its digest.
func means(path []string, was, is any) bool {
	from, to := fmt.Sprint(was), fmt.Sprint(is) // 9 can become "9"
	if path[len(path)-1] == "image" {
		from, _, _ = strings.Cut(from[strings.LastIndex(from, "/")+1:], ":")
		from, _, _ = strings.Cut(from, "@")
		return strings.Contains(to, from)
	}
	a, errA := resource.ParseQuantity(from)
	b, errB := resource.ParseQuantity(to)
	before, errBefore := time.ParseDuration(from)
	after, errAfter := time.ParseDuration(to)
	return strings.EqualFold(to, from) || errA == nil && errB == nil && a.Cmp(b) == 0 || errBefore == nil && errAfter == nil && before == after
}

// canBeZero reports whether 0 is a valid value of a field, other than no value.
func canBeZero(t *check.T, c check.Case, path []string) bool {
	if check.IsBuiltIn(c.Request.Kind) {
		return slices.Contains([]string{"replicas", "terminationGracePeriodSeconds", "revisionHistoryLimit", "backoffLimit", "parallelism", "completions", "ttlSecondsAfterFinished", "tolerationSeconds"}, path[len(path)-1])
	}
	schemas := t.Kinds.Schemas(c.Request.Kind, path)
	return len(schemas) > 0 && fmt.Sprint(schemas[len(schemas)-1]["minimum"]) == "0" && schemas[len(schemas)-1]["exclusiveMinimum"] != true
}

// checkUserValue sends a case with a value that the webhook would set otherwise. A denial is a decision about it.
func checkUserValue(t *check.T, c check.Case, path []string, value any) {
	possible := false
	r := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) { possible = put(u.Object, path, value) }))
	want, err := t.Canonical(r.Object)
	if !possible || err != nil || valueAt(want, path) == nil || !t.Called(r) {
		return
	}
	d, ok := t.Decide(r)
	got, err := t.Canonical(d.Object)
	if !ok || err != nil {
		return
	}
	t.Reached()
	if is := valueAt(got, path); !means(path[:1], valueAt(want, path), is) {
		t.Errorf("%s with %v at /%s: the webhook replaces it with %v%s", c, value, strings.Join(path, "/"), is, culprit(d))
	}
}

// eachValue calls f for each value that is no map and no list. The path has the keys, and the identities of the elements of lists.
func eachValue(in any, path []string, f func(path []string, value any)) {
	switch in := in.(type) {
	case map[string]any:
		for key, child := range in {
			eachValue(child, append(slices.Clone(path), key), f)
		}
	case []any:
		for _, child := range in {
			eachValue(child, append(slices.Clone(path), identity(child)), f)
		}
	default:
		f(path, in)
	}
}

// valueAt returns the value at a path of eachValue. Nil means that there is none, or that elements of a list have the same identity.
func valueAt(in any, path []string) any {
	for _, key := range path {
		switch of := in.(type) {
		case map[string]any:
			in = of[key]
		case []any:
			in = nil
			if i := slices.IndexFunc(of, func(each any) bool { return identity(each) == key }); i >= 0 {
				in = of[i]
				if slices.ContainsFunc(of[i+1:], func(each any) bool { return identity(each) == key }) {
					return nil
				}
			}
		default:
			return nil
		}
	}
	return in
}

// put sets a value at a path of eachValue, with the maps above it. It returns false if a list has no such element.
func put(in any, path []string, value any) bool {
	for _, key := range path[:len(path)-1] {
		if fields, ok := in.(map[string]any); ok && fields[key] == nil {
			fields[key] = map[string]any{}
		}
		in = valueAt(in, []string{key})
	}
	fields, ok := in.(map[string]any)
	if ok {
		fields[path[len(path)-1]] = value
	}
	return ok
}

// ofUsers reports whether a field belongs to users.
func ofUsers(path []string) bool {
	isEntry := len(path) > 1 && slices.Contains([]string{"labels", "annotations"}, path[len(path)-2])
	return (path[0] == "spec" || isEntry) && (!slices.Contains(path, "metadata") || isEntry && !strings.Contains(path[len(path)-1], "/"))
}

// another returns a value that a user could give a field instead. Nil means that none is known.
func another(value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case int64:
		return value + 1
	case string:
		if other := anotherText(value); other != "" {
			return other
		}
	}
	return nil
}

// anotherText returns another value for a string: of the same enumeration, a larger quantity or duration, or another name. Empty means that
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
