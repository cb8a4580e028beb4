package contract

import (
	"reflect"
)

// memory is what can be reached from some values: where it begins and ends.
type memory struct {
	pointers map[uintptr]bool
	arrays   [][2]uintptr
	// alive keeps all of it from being freed and used again for something else.
	alive []reflect.Value
}

// memoryOf returns all memory that can be reached from these values.
func memoryOf(roots ...any) *memory {
	m := &memory{pointers: map[uintptr]bool{}}
	walk(roots, func(place reflect.Value) {
		m.alive = append(m.alive, place)
		if place.Kind() == reflect.Slice {
			m.arrays = append(m.arrays, extent(place))
			return
		}
		m.pointers[place.Pointer()] = true
	})
	return m
}

// has reports whether a pointer, map or slice refers into the memory.
func (m *memory) has(place reflect.Value) bool {
	at := place.Pointer()
	if m.pointers[at] {
		return true
	}
	for _, each := range m.arrays {
		if at >= each[0] && at < each[1] {
			return true
		}
	}
	return false
}

func extent(slice reflect.Value) [2]uintptr {
	return [2]uintptr{slice.Pointer(), slice.Pointer() + uintptr(slice.Cap())*slice.Type().Elem().Size()}
}

// walk visits every pointer, map and slice that can be reached from values through
// exported fields, each once.
func walk(roots []any, visit func(place reflect.Value)) {
	type place struct {
		at   uintptr
		of   reflect.Type
		size int
	}
	seen := map[place]bool{}
	var follow func(reflect.Value)
	follow = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface:
			if !v.IsNil() {
				follow(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					follow(v.Field(i))
				}
			}
		case reflect.Array:
			for i := range v.Len() {
				follow(v.Index(i))
			}
		case reflect.Pointer, reflect.Map, reflect.Slice:
			if v.IsNil() || (v.Kind() == reflect.Slice && v.Cap() == 0) {
				return
			}
			here := place{at: v.Pointer(), of: v.Type()}
			if v.Kind() == reflect.Slice {
				here.size = v.Cap()
			}
			if seen[here] {
				return
			}
			seen[here] = true
			visit(v)
			switch v.Kind() {
			case reflect.Pointer:
				follow(v.Elem())
			case reflect.Map:
				for _, key := range v.MapKeys() {
					follow(v.MapIndex(key))
				}
			case reflect.Slice:
				for i := range v.Len() {
					follow(v.Index(i))
				}
			}
		}
	}
	for _, root := range roots {
		if root != nil {
			follow(reflect.ValueOf(root))
		}
	}
}

// scribbling is what was written over, to be put back.
type scribbling struct {
	undo []func()
	// places counts the pointers, maps and slices written over.
	places int
}

// scribble writes over what can be reached from some values: what pointers point to,
// entries of maps, elements of slices and what lies behind them in their arrays. Those
// for which spare is true are left, not what they refer to. Time and such, whose
// fields are not exported, are left too.
func scribble(spare func(place reflect.Value) bool, roots ...any) *scribbling {
	s := &scribbling{}
	var places []reflect.Value
	walk(roots, func(place reflect.Value) {
		if !spare(place) {
			places = append(places, place)
		}
	})
	for _, place := range places {
		s.places++
		switch place.Kind() {
		case reflect.Pointer:
			s.over(place.Elem())
		case reflect.Map:
			s.overMap(place)
		case reflect.Slice:
			all := place.Slice3(0, place.Cap(), place.Cap())
			for i := range all.Len() {
				s.over(all.Index(i))
			}
		}
	}
	return s
}

// restore puts back what was there.
func (s *scribbling) restore() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

// over writes over a value, as far as it is not elsewhere.
func (s *scribbling) over(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.over(v.Field(i))
			}
		}
		return
	case reflect.Array:
		for i := range v.Len() {
			s.over(v.Index(i))
		}
		return
	}
	other, ok := otherThan(v)
	if !ok || !v.CanSet() {
		return
	}
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	s.undo = append(s.undo, func() { v.Set(was) })
	v.Set(other)
}

func (s *scribbling) overMap(m reflect.Value) {
	for _, key := range m.MapKeys() {
		was := m.MapIndex(key)
		if other, ok := otherThan(was); ok {
			s.undo = append(s.undo, func() { m.SetMapIndex(key, was) })
			m.SetMapIndex(key, other)
		}
	}
	if m.Type().Key().Kind() != reflect.String {
		return
	}
	key := reflect.ValueOf(foreignMark).Convert(m.Type().Key())
	if !m.MapIndex(key).IsValid() {
		s.undo = append(s.undo, func() { m.SetMapIndex(key, reflect.Value{}) })
		m.SetMapIndex(key, reflect.Zero(m.Type().Elem()))
	}
}

// otherThan returns another value of the same type; not for values that refer to
// memory elsewhere, nor for those of several parts.
func otherThan(v reflect.Value) (reflect.Value, bool) {
	other := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		other.SetInt(v.Int() ^ 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		other.SetUint(v.Uint() ^ 1)
	case reflect.Float32, reflect.Float64:
		other.SetFloat(v.Float() + 1)
	case reflect.String:
		other.SetString(v.String() + "-scribbled")
	case reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		inner, ok := otherThan(v.Elem())
		if !ok {
			return v, false
		}
		other.Set(inner)
	default:
		return v, false
	}
	return other, true
}
