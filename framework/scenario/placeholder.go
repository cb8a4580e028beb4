package scenario

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// placeholderPattern matches "$(name)", and "$$(name)", which means the text "$(name)".
var placeholderPattern = regexp.MustCompile(`\$?\$\(([a-zA-Z][a-zA-Z0-9_.\-/]*)\)`)

// literalMark begins what placeholderPattern matches and is no placeholder.
const literalMark = "$$"

// knownPlaceholders says which placeholders there are.
const knownPlaceholders = "$(namespace), $(namespace.NAME) for a name in spec.namespaces, $(id), $(run), $(policy.NAME) for a policy or binding of the scenario, $(hooks.host), $(hooks.port), $(hooks.caBundle), $(steps.ID.…) for an earlier step"

// placeholdersIn returns the names of the placeholders in a string.
func placeholdersIn(text string) []string {
	if !strings.Contains(text, "$(") {
		return nil
	}
	var names []string
	for _, found := range placeholderPattern.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(found[0], literalMark) {
			names = append(names, found[1])
		}
	}
	return names
}

// Replace returns a deep copy of a value of a scenario with the placeholders, such as "$(namespace)", replaced in every
// string, the keys of maps included. A string that is only a placeholder becomes the
// value itself if the type allows it. The error names the first unknown placeholder.
func Replace[T any](value T, values func(name string) (any, bool)) (T, error) {
	r := &replacement{values: values}
	r.text = r.replaced
	copied := r.copy(reflect.ValueOf(&value).Elem())
	if r.unknown != "" {
		var zero T
		return zero, fmt.Errorf("unknown placeholder $(%s): want one of %s; to write the text itself, write $$(%s)", r.unknown, knownPlaceholders, r.unknown)
	}
	out, _ := copied.Interface().(T)
	return out, nil
}

// withStrings returns a deep copy of a value in which each string, keys of maps included, is changed.
func withStrings[T any](value T, change func(string) string) T {
	r := &replacement{text: change}
	out, _ := r.copy(reflect.ValueOf(&value).Elem()).Interface().(T)
	return out
}

// replacement is one call of Replace or withStrings.
type replacement struct {
	// text returns what a string becomes.
	text func(string) string
	// values has the values of placeholders, or is nil if a string never becomes another value.
	values func(name string) (any, bool)
	// unknown is the first name without a value.
	unknown string
}

func (r *replacement) copy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v
		}
	default:
	}
	switch v.Kind() {
	case reflect.String:
		out.SetString(r.text(v.String()))
	case reflect.Interface:
		r.copyInterface(v, out)
	case reflect.Pointer:
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(r.copy(v.Elem()))
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(r.copy(it.Key()), r.copy(it.Value()))
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(r.copy(v.Index(i)))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.copy(v.Field(i)))
			}
		}
	default:
		return v
	}
	return out
}

// copyInterface sets the copy of a value of any type. A string that is only a placeholder becomes its value.
func (r *replacement) copyInterface(v, out reflect.Value) {
	if text, ok := v.Interface().(string); ok && r.values != nil {
		if match := placeholderPattern.FindStringSubmatch(text); match != nil && match[0] == text && !strings.HasPrefix(text, literalMark) {
			if value, ok := r.values(match[1]); ok {
				if value != nil {
					out.Set(reflect.ValueOf(value))
				}
				return
			}
		}
	}
	out.Set(r.copy(v.Elem()))
}

// replaced returns a string with its placeholders replaced.
func (r *replacement) replaced(text string) string {
	if !strings.Contains(text, "$(") {
		return text
	}
	return placeholderPattern.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, literalMark) {
			return match[1:]
		}
		name := match[2 : len(match)-1]
		value, ok := r.values(name)
		if !ok {
			if r.unknown == "" {
				r.unknown = name
			}
			return match
		}
		return fmt.Sprint(value)
	})
}
