package matchers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func mutatedOnly(paths []string) *matcher {
	m := mutated("have mutated only "+strings.Join(paths, ", "), paths)
	if len(paths) == 0 {
		m.match = func(result) (bool, error) {
			return false, misuseError("HaveMutatedOnly has no paths: use HaveMutatedNothing")
		}
	}
	return m
}

func mutatedNothing() *matcher { return mutated("have mutated nothing", nil) }

// mutated matches if the plugin changed something at or below each of the paths, and nothing else.
func mutated(expected string, paths []string) *matcher {
	difference := func(r result) string {
		if r.plugin == nil {
			return ""
		}
		changes := r.plugin.Changes()
		other := slices.DeleteFunc(slices.Clone(changes), func(change string) bool {
			return slices.ContainsFunc(paths, func(path string) bool { return isBelow(change, path) })
		})
		untouched := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
			return slices.ContainsFunc(changes, func(change string) bool { return isBelow(change, path) })
		})
		var parts []string
		if len(other) > 0 {
			parts = append(parts, "but it mutated "+strings.Join(other, ", "))
		}
		if len(untouched) > 0 {
			parts = append(parts, "but it left "+strings.Join(untouched, ", "))
		}
		return strings.Join(parts, "\n")
	}
	return &matcher{expected: expected, detail: difference, match: func(r result) (bool, error) {
		if r.plugin == nil {
			return false, errNoPlugin
		}
		return difference(r) == "", nil
	}}
}

// isBelow reports whether a change is at or below a path.
func isBelow(change, path string) bool {
	rest, ok := strings.CutPrefix(change, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func idempotent() *matcher {
	return &matcher{
		expected: "be idempotent",
		match: func(r result) (bool, error) {
			switch {
			case r.plugin == nil:
				return false, errNoPlugin
			case !r.Allowed():
				return false, misuseError("BeIdempotent: the request was rejected, so there is nothing to admit again:\n" + r.plugin.String())
			}
			return difference(r) == "", nil
		},
		detail: difference,
	}
}

// difference returns how the result of a second Admit differs from that of the first, or "".
func difference(r result) string {
	if r.plugin == nil || !r.Allowed() {
		return ""
	}
	again := r.plugin.Again()
	switch {
	case !again.Allowed():
		return "but Admit, run again, rejects what it made: " + again.Status.Message
	case len(again.Changes()) > 0:
		return "but Admit, run again, mutates " + strings.Join(again.Changes(), ", ")
	}
	was, is := annotations(r), annotations(result{again.Result, &again})
	for key, value := range is {
		if before, ok := was[key]; ok && before != value {
			return fmt.Sprintf("but Admit, run again, annotates %s=%q instead of %q", key, value, before)
		}
	}
	return ""
}

// annotations returns the annotations of the audit event.
func annotations(r result) map[string]string {
	if r.Audit == nil {
		return nil
	}
	return maps.Clone(r.Audit.Annotations)
}
