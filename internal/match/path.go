package match

import (
	"fmt"
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
