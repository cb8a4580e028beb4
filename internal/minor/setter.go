package minor

import (
	"errors"
	"fmt"
	"reflect"
)

// Validator is the name of the method that is part of most Wants interfaces.
const Validator = "ValidateInitialization"

// ErrNoMethod is the error of Wants.Setter for a plugin without the method. Such a plugin does not
// want the value. That is not a mistake of the plugin.
var ErrNoMethod = errors.New("the plugin has no such method")

// Setter is the setter of one plugin.
type Setter struct{ method reflect.Value }

// Setter returns the plugin's setter, if the plugin implements the interface. If the plugin has no
// such method, the error is ErrNoMethod. Any other error reports what the plugin lacks.
func (w Wants) Setter(plugin any) (Setter, error) {
	method := reflect.ValueOf(plugin).MethodByName(w.Method)
	if !method.IsValid() {
		return Setter{}, ErrNoMethod
	}
	kind := method.Type()
	if kind.IsVariadic() || kind.NumIn() != 1 || kind.NumOut() != 0 || Name(kind.In(0)) != w.Param {
		return Setter{}, fmt.Errorf("its type is %s, that of %s is func(%s): give it that type", kind, w.Interface, w.Param)
	}
	if w.Validates && !validates(plugin) {
		return Setter{}, fmt.Errorf("the plugin has no method %s() error, which is part of %s: add it", Validator, w.Interface)
	}
	return Setter{method}, nil
}

// validates reports whether the plugin is an admission.InitializationValidator.
func validates(plugin any) bool {
	_, ok := plugin.(interface{ ValidateInitialization() error })
	return ok
}

// Param is the type of the value that the setter takes.
func (s Setter) Param() reflect.Type { return s.method.Type().In(0) }

// Set calls the setter. A nil value is the zero value of the parameter's type. For a value of
// another type Set returns an error and does not call the setter. It does not recover a panic of
// the setter.
func (s Setter) Set(value any) error {
	argument := reflect.Zero(s.Param())
	if value != nil {
		argument = reflect.ValueOf(value)
		if !argument.Type().AssignableTo(s.Param()) {
			return fmt.Errorf("got a value of type %s, want %s", argument.Type(), s.Param())
		}
	}
	s.method.Call([]reflect.Value{argument})
	return nil
}

// Idle returns a value for a parameter that is a pointer to a struct of functions, as that of
// SetManifestLoaders is. Each function does nothing and returns zero values. For any other type
// Idle returns nil.
func Idle(param reflect.Type) any {
	if param.Kind() != reflect.Pointer || param.Elem().Kind() != reflect.Struct {
		return nil
	}
	made := reflect.New(param.Elem())
	for i := range param.Elem().NumField() {
		field := made.Elem().Field(i)
		if field.Kind() != reflect.Func || !field.CanSet() {
			continue
		}
		kind := field.Type()
		field.Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
			results := make([]reflect.Value, 0, kind.NumOut())
			for j := range kind.NumOut() {
				results = append(results, reflect.Zero(kind.Out(j)))
			}
			return results
		}))
	}
	return made.Interface()
}

// Name returns the name of a type with the path of its package.
func Name(t reflect.Type) string {
	switch {
	case t.Name() != "" && t.PkgPath() != "":
		return t.PkgPath() + "." + t.Name()
	case t.Name() != "":
		return t.Name()
	case t.Kind() == reflect.Pointer:
		return "*" + Name(t.Elem())
	case t.Kind() == reflect.Slice:
		return "[]" + Name(t.Elem())
	default:
		return t.String()
	}
}
