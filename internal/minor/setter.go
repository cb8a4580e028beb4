package minor

import (
	"errors"
	"fmt"
	"reflect"
)

// Validator is the name of the method that is part of most Wants interfaces.
const Validator = "ValidateInitialization"

// ErrNoMethod is what Setter's error wraps for a plugin that does not have the method
// at all, which is no fault of it.
var ErrNoMethod = errors.New("no such method")

// Setter is the setter of one plugin.
type Setter struct{ method reflect.Value }

// Setter returns the plugin's setter, if the plugin implements the interface. Else the
// error says what is amiss: an error that is ErrNoMethod means that nothing is.
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

// validates is whether the plugin is an admission.InitializationValidator.
func validates(plugin any) bool {
	_, ok := plugin.(interface{ ValidateInitialization() error })
	return ok
}

// Param is the type of the value that the setter takes.
func (s Setter) Param() reflect.Type { return s.method.Type().In(0) }

// Set calls the setter. Nil is the nil of the parameter's type. A value of another type
// is an error, and the setter is not called. A panic of the setter is the caller's to
// recover.
func (s Setter) Set(value any) error {
	argument := reflect.Zero(s.Param())
	if value != nil {
		argument = reflect.ValueOf(value)
		if !argument.Type().AssignableTo(s.Param()) {
			return fmt.Errorf("the value is of type %s, which is no %s", argument.Type(), s.Param())
		}
	}
	s.method.Call([]reflect.Value{argument})
	return nil
}

// Idle returns a value for a parameter that is a pointer to a struct of functions, as
// that of SetManifestLoaders: each function does nothing and returns zero values. It
// returns nil for any other type.
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

// Name writes a type with the whole path of its package.
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
