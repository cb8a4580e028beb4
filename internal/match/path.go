package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Lookup returns the value at a path as Key and Index write it:
// "review.request.uid", `labels["example.com/x"]`, "items[0].name". It returns
// Absent{} if there is none, and an error for an invalid path.
func Lookup(value any, path string) (any, error) {
	for rest := path; rest != ""; {
		step, after, err := nextStep(rest)
		if err != nil {
			return nil, fmt.Errorf("read path %q: %w", path, err)
		}
		value = descend(value, step)
		rest = after
		if tail, dotted := strings.CutPrefix(after, "."); dotted {
			rest = tail
			if rest == "" {
				return nil, fmt.Errorf("read path %q: expected a name after the last dot", path)
			}
		}
	}
	return value, nil
}

// nextStep splits off the first step of a path: a string for a field, an int for an item.
func nextStep(path string) (step any, rest string, err error) {
	if !strings.HasPrefix(path, "[") {
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return nil, "", fmt.Errorf("expected a name, got %q", path)
		}
		return path[:end], path[end:], nil
	}
	inner := path[1:]
	if quoted, err := strconv.QuotedPrefix(inner); err == nil {
		key, _ := strconv.Unquote(quoted)
		rest, closed := strings.CutPrefix(inner[len(quoted):], "]")
		if !closed {
			return nil, "", fmt.Errorf("expected ] after %s", quoted)
		}
		return key, rest, nil
	}
	digits, rest, closed := strings.Cut(inner, "]")
	index, err := strconv.Atoi(digits)
	if !closed || err != nil || index < 0 {
		return nil, "", fmt.Errorf("expected [INDEX] or [\"name\"], got %q", path)
	}
	return index, rest, nil
}

func descend(value, step any) any {
	if hidden, ok := value.(Hidden); ok {
		inner := descend(hidden.Value, step)
		if inner == (any)(Absent{}) {
			return inner
		}
		return Hidden{inner}
	}
	switch container := shape(value).(type) {
	case map[string]any:
		if key, ok := step.(string); ok {
			return field(container, key)
		}
	case []any:
		if index, ok := step.(int); ok && index < len(container) {
			return container[index]
		}
	}
	return Absent{}
}

// Ancestors returns a path and the paths of what contains its value, from the inside to the outside:
// "a.b[0]", "a.b", "a". It is nil for an invalid path.
func Ancestors(path string) []string {
	var all []string
	for rest := path; rest != ""; {
		_, after, err := nextStep(rest)
		if err != nil {
			return nil
		}
		all = append(all, path[:len(path)-len(after)])
		rest = strings.TrimPrefix(after, ".")
	}
	slices.Reverse(all)
	return all
}

// Pointer returns a path as a JSON pointer (RFC 6901): "/a/b/0".
func Pointer(path string) string {
	pointer := ""
	for rest := path; rest != ""; {
		step, after, err := nextStep(rest)
		if err != nil {
			return pointer
		}
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step))
		rest = strings.TrimPrefix(after, ".")
	}
	return pointer
}
