package check

import (
	"reflect"
)

// Memory is the memory that some values refer to, directly or indirectly.
type Memory struct {
	pointers map[uintptr]bool
	arrays   [][2]uintptr
	// alive keeps the memory from being freed and used for something else.
	alive []reflect.Value
}

// MemoryOf returns the memory that these values refer to.
func MemoryOf(roots ...any) *Memory {
	m := &Memory{pointers: map[uintptr]bool{}}
	walk(roots, func(value reflect.Value) {
		m.alive = append(m.alive, value)
		if value.Kind() == reflect.Slice {
			m.arrays = append(m.arrays, extent(value))
			return
		}
		m.pointers[value.Pointer()] = true
	})
	return m
}

// Contains reports whether a pointer, map or slice refers to this memory.
func (m *Memory) Contains(value reflect.Value) bool {
	at := value.Pointer()
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

// extent returns where the array of a slice begins and ends.
func extent(slice reflect.Value) [2]uintptr {
	return [2]uintptr{slice.Pointer(), slice.Pointer() + uintptr(slice.Cap())*slice.Type().Elem().Size()}
}

// walk visits each pointer, map and slice that values refer to through exported fields.
func walk(roots []any, visit func(value reflect.Value)) {
	type address struct {
		at   uintptr
		of   reflect.Type
		size int
	}
	seen := map[address]bool{}
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
			here := address{at: v.Pointer(), of: v.Type()}
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
