package matchers

import (
	"fmt"
	"maps"
	"strings"
)

func mutatedOnly(paths []string) *matcher {
	return &matcher{
		expected: "have mutated only " + strings.Join(paths, ", "),
		match: func(r result) (bool, error) {
			switch {
			case r.plugin == nil:
				return false, errNoPlugin
			case len(paths) == 0:
				return false, misuseError("HaveMutatedOnly has no paths: use HaveMutatedNothing")
			}
			other, untouched := compare(r.plugin.Changes(), paths)
			return len(other) == 0 && len(untouched) == 0, nil
		},
		detail: func(r result) string {
			if r.plugin == nil {
				return ""
			}
			other, untouched := compare(r.plugin.Changes(), paths)
			var parts []string
			if len(other) > 0 {
				parts = append(parts, "but it mutated "+strings.Join(other, ", "))
			}
			if len(untouched) > 0 {
				parts = append(parts, "but it left "+strings.Join(untouched, ", "))
			}
			return strings.Join(parts, "\n")
		},
	}
}

// compare returns the changes that are not at or below one of the paths, and the paths without a
// change at or below them.
func compare(changes, paths []string) (other, untouched []string) {
	for _, change := range changes {
		if !beneathAny(change, paths) {
			other = append(other, change)
		}
	}
	for _, path := range paths {
		touched := false
		for _, change := range changes {
			touched = touched || beneathAny(change, []string{path})
		}
		if !touched {
			untouched = append(untouched, path)
		}
	}
	return other, untouched
}

func beneathAny(change string, paths []string) bool {
	for _, path := range paths {
		rest, ok := strings.CutPrefix(change, path)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func mutatedNothing() *matcher {
	return &matcher{
		expected: "have mutated nothing",
		match: func(r result) (bool, error) {
			if r.plugin == nil {
				return false, errNoPlugin
			}
			return len(r.plugin.Changes()) == 0, nil
		},
		detail: func(r result) string {
			if r.plugin == nil || len(r.plugin.Changes()) == 0 {
				return ""
			}
			return "but it mutated " + strings.Join(r.plugin.Changes(), ", ")
		},
	}
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
