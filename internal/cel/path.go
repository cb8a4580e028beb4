package cel

import (
	"fmt"
	"slices"
	"strings"
)

// Path is where a value is in an object: names of fields and keys, and indexes of lists.
type Path []any

// String returns "spec.containers[0].image".
func (p Path) String() string {
	var text strings.Builder
	for _, step := range p {
		if name, ok := step.(string); ok && strings.ContainsAny(name, "./") {
			fmt.Fprintf(&text, "[%q]", name)
		} else if ok {
			text.WriteString("." + name)
		} else {
			fmt.Fprintf(&text, "[%v]", step)
		}
	}
	return strings.TrimPrefix(text.String(), ".")
}

// Then returns the path of what a value has at one more step.
func (p Path) Then(step any) Path { return append(slices.Clone(p), step) }

// Below reports whether a path is at or below another one.
func (p Path) Below(other Path) bool {
	return len(p) >= len(other) && slices.Equal(p[:len(other)], other)
}

// In reports whether a path is at or below one of others.
func (p Path) In(others []Path) bool { return slices.ContainsFunc(others, p.Below) }

// param is the first step of a Path that is read of a param.
type param struct{}

// OfParam returns the path in the param that a path is, or another path as it is.
func (p Path) OfParam() (Path, bool) {
	if len(p) > 0 && p[0] == any(param{}) {
		return p[1:], true
	}
	return p, false
}

// Each is the step of a Path to any element of a list, or to any entry of a map.
type Each struct{}

// String returns "*".
func (Each) String() string { return "*" }

// Matches reports whether the steps that a path that is read and another one both have are the same. A key that is read of a list is
// one of its elements: 'ALL' in drop.
func (p Path) Matches(path Path) bool {
	for i := range min(len(p), len(path)) {
		_, key := p[i].(string)
		_, index := path[i].(int)
		if p[i] != any(Each{}) && p[i] != path[i] && (!key || !index) {
			return false
		}
	}
	return true
}
