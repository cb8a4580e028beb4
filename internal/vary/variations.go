package vary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/internal/cel"
)

// Variation is an object with one change.
type Variation struct {
	// What describes the change.
	What   string
	Object map[string]any
}

// Varier changes what expressions read of objects.
type Varier struct {
	// reads are the paths that are read, and values the constants, with others that are near: those that a mutant changes first.
	reads  []cel.Path
	values []any
	all    []Variation
}

// NewVarier returns a Varier for expressions of a policy, whose variables it has by name. Changed are expressions of which a mutant
// changes the constants.
func NewVarier(variables map[string]string, changed, expressions []string) Varier {
	var v Varier
	names := map[any]bool{}
	for _, read := range cel.NewReader(variables, expressions, "object", "oldObject").Reads {
		for _, path := range read.Paths {
			if !slices.ContainsFunc(v.reads, func(p cel.Path) bool { return slices.Equal(p, path) }) {
				v.reads = append(v.reads, path)
			}
			for _, step := range path {
				names[step] = true
			}
		}
	}
	for _, each := range cel.Constants(slices.Concat(changed, expressions)...) {
		switch value := each.(type) {
		case int64:
			v.values = append(v.values, value, value-1, value+1)
		case string:
			if !names[value] && !strings.Contains(value, "$") { // a key, or a placeholder
				v.values = append(v.values, value, value+"x", "x"+value)
			}
		}
	}
	return v
}

// Variations returns copies of an object with one change each.
func (v Varier) Variations(object map[string]any) []Variation {
	for _, path := range v.reads {
		v.visit(object, nil, path, "")
	}
	return v.all
}

// add adds a change, unless it is not possible. In names the list that has one more element, which is what is changed.
func (v *Varier) add(what, in string, path cel.Path, value any, object map[string]any) {
	if object == nil {
		return
	}
	switch value.(type) {
	case string, int64, bool:
		what = fmt.Sprintf("%s %s %v", what, path, value)
	default:
		what = fmt.Sprintf("%s %s", what, path)
	}
	v.all = append(v.all, Variation{in + what, object})
}

// put adds the change of a value at a path.
func (v *Varier) put(object map[string]any, path cel.Path, value any, in string) {
	v.add("with", in, path, value, Put(object, path, value))
}

// visit changes what is read at the rest of a path, in the value at the first part of it.
func (v *Varier) visit(object map[string]any, at, rest cel.Path, in string) {
	value, has := At(object, at)
	if !has {
		v.absent(object, at, rest, in)
		return
	}
	if len(rest) == 0 {
		v.change(object, at, value, in)
		return
	}
	name, isName := rest[0].(string)
	switch value := value.(type) {
	case map[string]any:
		if isName {
			v.visit(object, at.Then(name), rest[1:], in)
			return
		}
		v.keys(object, at, value, in) // first: macros loop over the keys
		for _, key := range slices.Sorted(maps.Keys(value)) {
			v.visit(object, at.Then(key), rest[1:], in)
		}
	case []any:
		for i := range value {
			v.visit(object, at.Then(i), rest[1:], in)
		}
		if in == "" && len(value) > 0 {
			v.another(object, at, value, value[0], rest[1:])
		}
	}
}

// change changes a value that is there.
func (v *Varier) change(object map[string]any, at cel.Path, value any, in string) {
	if len(at) == 0 || IsIdentity(at) {
		return
	}
	switch value := value.(type) {
	case string, int64:
		for _, other := range v.values {
			if fmt.Sprintf("%T", other) == fmt.Sprintf("%T", value) && other != value {
				v.put(object, at, other, in)
			}
		}
	case bool:
		v.put(object, at, !value, in)
	case []any:
		v.add("with an empty", in, at, nil, With(object, at, Empty))
	}
	v.add("without", in, at, nil, With(object, at, Remove))
}

// absent puts a value where there is none: a constant, or one of each type, because the type of the field is not known. A list gets an
// element of another list beside it: initContainers like containers.
func (v *Varier) absent(object map[string]any, at, rest cel.Path, in string) {
	if slices.ContainsFunc(v.reads, func(p cel.Path) bool { return len(rest) == 0 && len(p) > len(at) && at.Matches(p) }) {
		return // what it has is read too
	}
	step := slices.IndexFunc(rest, func(step any) bool { _, isName := step.(string); return !isName })
	whole := slices.Concat(at, rest)
	if step >= 0 {
		beside, _ := At(object, at[:len(at)-1])
		fields, _ := beside.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if list, _ := fields[name].([]any); step == 0 && in == "" && len(list) > 0 {
				v.another(object, at, nil, list[0], rest[1:])
			}
		}
		return
	}
	for _, value := range append(slices.Clone(v.values), true, false, "x", int64(1)) {
		v.put(object, whole, value, in)
	}
}

// keys adds the constants as keys to a map of texts.
func (v *Varier) keys(object map[string]any, at cel.Path, value map[string]any, in string) {
	if len(value) == 0 {
		return
	}
	first := slices.Min(slices.Collect(maps.Keys(value)))
	text, isText := value[first].(string)
	if !isText {
		return
	}
	for _, other := range v.values {
		if name, ok := other.(string); ok && value[name] == nil {
			v.put(object, at.Then(name), text, in)
		}
	}
}

// another adds one more element to a list: a constant, or a copy of an element under another name, with and without a change of what is
// read of it at the rest of a path.
func (v *Varier) another(object map[string]any, at cel.Path, list []any, first any, rest cel.Path) {
	fields, isObject := first.(map[string]any)
	if !isObject {
		for _, value := range v.values {
			if text, ok := value.(string); ok {
				v.put(object, at, append(slices.Clone(list), any(text)), "")
			}
		}
		return
	}
	item := runtime.DeepCopyJSON(fields)
	if name, ok := item["name"].(string); ok {
		item["name"] = name + "-2"
	}
	in := fmt.Sprintf("with one more of %s ", at)
	if more := Put(object, at, append(slices.Clone(list), any(item))); more != nil {
		v.add("as", in, at.Then(0), nil, more)
		v.visit(more, at.Then(len(list)), rest, in)
	}
}
