package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Path is a way into a JSON value: strings for fields, ints for items.
type Path []any

// ParsePath reads a path as Path.String writes it: "review.request.uid", `labels["example.com/x"]`, "items[0].name".
func ParsePath(text string) (Path, error) {
	var path Path
	for rest := text; rest != ""; {
		step, after, err := nextStep(rest)
		if err != nil {
			return nil, fmt.Errorf("read path %q: %w", text, err)
		}
		path, rest = append(path, step), after
		if tail, dotted := strings.CutPrefix(after, "."); dotted {
			rest = tail
			if rest == "" {
				return nil, fmt.Errorf("read path %q: expected a name after the last dot", text)
			}
		}
	}
	return path, nil
}

// String returns the path as Key and Index write it.
func (p Path) String() string {
	text := ""
	for _, step := range p {
		switch step := step.(type) {
		case int:
			text = Index(text, step)
		case string:
			text = Key(text, step)
		}
	}
	return text
}

// Pointer returns the path as a JSON pointer (RFC 6901): "/a/b/0".
func (p Path) Pointer() string {
	pointer := ""
	for _, step := range p {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step))
	}
	return pointer
}

// with returns a copy of the path with one more step.
func (p Path) with(step any) Path { return append(slices.Clip(p), step) }

// Lookup returns the value at a path, or Absent{} if there is none, and an error for an invalid path.
func Lookup(value any, path string) (any, error) {
	steps, err := ParsePath(path)
	for _, step := range steps {
		value = descend(value, step)
	}
	if err != nil {
		return nil, err
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
