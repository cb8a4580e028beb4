package object

import "strings"

// SplitPath splits a path at its dots and brackets: "a[0].b" has the steps a, 0 and b, and
// "data[a.b]" has data and a.b.
func SplitPath(path string) []string {
	var steps []string
	for path != "" {
		if inner, ok := strings.CutPrefix(path, "["); ok {
			step, rest, _ := strings.Cut(inner, "]")
			steps, path = append(steps, strings.Trim(step, `"`)), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		steps = append(steps, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return steps
}
