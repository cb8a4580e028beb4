package engine

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// placeholder matches "$(name)", and "$$(name)", which means the text "$(name)".
var placeholder = regexp.MustCompile(`\$?\$\(([a-zA-Z][a-zA-Z0-9_.\-/]*)\)`)

// literal begins what placeholder matches and is no placeholder.
const literal = "$$"

// values returns the value of a placeholder.
type values func(name string) (any, bool)

// substitute returns a deep copy of a value with the placeholders replaced in every
// string, the keys of mappings included. A string that is only a placeholder becomes the
// value itself if the type allows it. The error names the first unknown placeholder.
func substitute[T any](value T, lookup values) (T, error) {
	s := &substitution{lookup: lookup}
	copied := s.copy(reflect.ValueOf(&value).Elem())
	if s.unknown != "" {
		var zero T
		return zero, fmt.Errorf("unknown placeholder $(%s): want $(namespace), $(namespace.NAME) of a name in namespaces, $(id), $(run), $(policy.NAME) of a given policy or binding, $(hooks.host), $(hooks.port), $(hooks.caBundle) or $(steps.ID.…) of an earlier step; for a text that is no placeholder write $$(%s)", s.unknown, s.unknown)
	}
	out, _ := copied.Interface().(T)
	return out, nil
}

// substituteGiven is substitute for manifests. What is no placeholder stays as it is in a
// CustomResourceDefinition: descriptions of fields of Pods have $(VAR_NAME).
func (c *scenarioCase) substituteGiven(manifests []map[string]any) ([]map[string]any, error) {
	out := make([]map[string]any, len(manifests))
	for i, manifest := range manifests {
		lookup := c.lookup
		if kindOf(manifest).Kind == "CustomResourceDefinition" {
			lookup = func(name string) (any, bool) {
				if value, ok := c.lookup(name); ok {
					return value, true
				}
				return "$(" + name + ")", true
			}
		}
		var err error
		if out[i], err = substitute(manifest, lookup); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type substitution struct {
	lookup  values
	unknown string
}

func (s *substitution) copy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		out := reflect.New(v.Type()).Elem()
		out.SetString(s.text(v.String()))
		return out
	case reflect.Interface:
		return s.copyInterface(v)
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(s.copy(v.Elem()))
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(s.copy(it.Key()), s.copy(it.Value()))
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(s.copy(v.Index(i)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(s.copy(v.Field(i)))
			}
		}
		return out
	default:
		return v
	}
}

func (s *substitution) copyInterface(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	if text, ok := v.Interface().(string); ok {
		if match := placeholder.FindStringSubmatch(text); match != nil && match[0] == text && !strings.HasPrefix(text, literal) {
			if value, ok := s.lookup(match[1]); ok {
				out := reflect.New(v.Type()).Elem()
				if value != nil {
					out.Set(reflect.ValueOf(value))
				}
				return out
			}
		}
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(s.copy(v.Elem()))
	return out
}

func (s *substitution) text(text string) string {
	if !strings.Contains(text, "$(") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, literal) {
			return match[1:]
		}
		name := match[2 : len(match)-1]
		value, ok := s.lookup(name)
		if !ok {
			if s.unknown == "" {
				s.unknown = name
			}
			return match
		}
		return fmt.Sprint(value)
	})
}

// walk follows a dotted path into decoded JSON. A number indexes a list. Keys with dots
// cannot be reached.
func walk(value any, path string) (any, bool) {
	for _, part := range strings.Split(path, ".") {
		switch holder := value.(type) {
		case map[string]any:
			next, ok := holder[part]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(holder) {
				return nil, false
			}
			value = holder[i]
		default:
			return nil, false
		}
	}
	return value, true
}
