package matchers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
)

func madeNoCalls() *matcher {
	return &matcher{
		expected: "have made no calls",
		match: func(r result) (bool, error) {
			if r.plugin == nil {
				return false, errNoPlugin
			}
			return len(r.plugin.Calls) == 0, nil
		},
	}
}

func written(verb, resource string) *matcher {
	return &matcher{
		expected: fmt.Sprintf("have written: %s %s", verb, resource),
		match: func(r result) (bool, error) {
			if r.plugin == nil {
				return false, errNoPlugin
			}
			return r.plugin.Calls.Writes().Has(verb, resource), nil
		},
	}
}

func auditAnnotation(key string, value any) *matcher {
	accepts, words := valueMatcher(value)
	return &matcher{
		expected: fmt.Sprintf("have the audit annotation %s: %s", key, words),
		match: func(r result) (bool, error) {
			if r.Audit == nil {
				return false, misuseError("this Target has no access to audit events")
			}
			got, ok := r.Audit.Annotations[key]
			if !ok {
				return false, nil
			}
			return accepts(got)
		},
		detail: func(r result) string {
			if got, ok := annotations(r)[key]; ok {
				return fmt.Sprintf("got %q", got)
			}
			return "annotations: " + orNone(slices.Sorted(maps.Keys(annotations(r))))
		},
	}
}

func warning(text any) *matcher {
	accepts, words := valueMatcher(text)
	return &matcher{
		expected: "have the warning " + words,
		match: func(r result) (bool, error) {
			for _, each := range r.Warnings {
				if ok, err := accepts(each); ok || err != nil {
					return ok, err
				}
			}
			return false, nil
		},
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// valueMatcher returns a check of a string and the text of the expectation. Wanted is a string or a
// gomega matcher.
func valueMatcher(wanted any) (accepts func(string) (bool, error), words string) {
	switch w := wanted.(type) {
	case string:
		return func(got string) (bool, error) { return got == w, nil }, fmt.Sprintf("%q", w)
	case types.GomegaMatcher:
		return func(got string) (bool, error) { return w.Match(got) }, fmt.Sprintf("that satisfies %T", w)
	default:
		return func(string) (bool, error) {
			return false, misuseError(fmt.Sprintf("expected a string or a gomega matcher, got %T", wanted))
		}, fmt.Sprintf("%v", wanted)
	}
}
