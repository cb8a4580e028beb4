package harness

import (
	"context"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/admissiontest/admissiontest/internal/processes"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"
)

const (
	// readyLimit is how long Build waits, at most, until a plugin with goroutines says that it is
	// ready. A plugin that is not ready then may wait in its requests, which takes longer.
	readyLimit = 500 * time.Millisecond
	readyPoll  = time.Millisecond
	// ownInformers is the package of the informers of a World.
	ownInformers = "github.com/admissiontest/admissiontest/fakes/internal/informer"
)

// findInformers finds the informers that plugins made themselves: the World follows their caches. It
// waits until they have their first objects, unless the World holds these back.
func (h *Harness) findInformers(ctx context.Context, plugins ...admission.Interface) {
	found := informersOf{seen: map[pointer]bool{}}
	for _, plugin := range plugins {
		found.search(reflect.ValueOf(plugin))
	}
	h.world.FollowCaches(found.caches...)
	if h.world.HasUnsynced() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	processes.UntilDone(ctx, 0, func() bool { // a ready function may block
		for n := 1; ctx.Err() == nil && !found.isReady(); n++ {
			seldom := n&(n-1) == 0 // a profile of the goroutines takes long
			if len(found.caches) == 0 && seldom && len(h.Goroutines()) == 0 {
				break
			}
			time.Sleep(readyPoll) //nolint:forbidigo // client-go does not tell when an informer has synced
		}
		return true
	})
}

// informersOf has what plugins hold of their informers.
type informersOf struct {
	caches []cache.Store
	// ready are the functions by which the plugins learn that their caches have synced.
	ready []func() bool
	// seen has the pointers that were searched.
	seen map[pointer]bool
}

// pointer identifies a pointer: a struct and its first field have the same address.
type pointer struct {
	typ reflect.Type
	to  unsafe.Pointer
}

// isReady reports whether all ready functions return true. One that panics does not count: the
// request that calls it reports that.
func (i *informersOf) isReady() bool {
	all := true
	_ = guard("a ready function", func() error {
		for _, ready := range i.ready {
			all = all && ready()
		}
		return nil
	})
	return all
}

// search searches a value. It reads only what can lead to an informer by its type: other fields may
// change at the same time.
func (i *informersOf) search(value reflect.Value) {
	if !value.IsValid() || value.Type().PkgPath() == ownInformers || !leads(value.Type(), nil) {
		return
	}
	switch value.Kind() {
	case reflect.Interface:
		i.search(value.Elem())
	case reflect.Pointer:
		at := pointer{value.Type(), value.UnsafePointer()}
		if at.to == nil || i.seen[at] {
			return
		}
		i.seen[at] = true
		if !i.take(value) {
			i.search(value.Elem())
		}
	case reflect.Func:
		i.take(value)
	case reflect.Struct:
		for n := range value.NumField() {
			i.search(value.Field(n))
		}
	case reflect.Slice, reflect.Array:
		for n := range value.Len() {
			i.search(value.Index(n))
		}
	}
}

// take takes a value that is an informer, a cache or a ready function, unless it is of a World. It
// returns false if the value is neither.
func (i *informersOf) take(value reflect.Value) bool {
	if value.Kind() == reflect.Pointer && value.Type().Elem().PkgPath() == ownInformers {
		return true
	}
	switch held := readable(value).(type) {
	case nil:
		return false
	case admission.ReadyFunc:
		i.addReady(held)
	case cache.InformerSynced:
		i.addReady(held)
	case cache.Indexer:
		i.caches = append(i.caches, held)
	case cache.SharedInformer:
		i.caches = append(i.caches, held.GetStore())
	default:
		return false
	}
	return true
}

func (i *informersOf) addReady(ready func() bool) {
	if ready != nil {
		i.ready = append(i.ready, ready)
	}
}

// readable returns the content of a value, also if it is an unexported field. Nil if that cannot be
// read.
func readable(value reflect.Value) any {
	switch {
	case value.CanInterface():
		return value.Interface()
	case value.Kind() == reflect.Pointer:
		return reflect.NewAt(value.Type().Elem(), value.UnsafePointer()).Interface()
	case value.CanAddr():
		return reflect.NewAt(value.Type(), unsafe.Pointer(value.UnsafeAddr())).Elem().Interface() //nolint:gosec // plugins keep listers in unexported fields
	default:
		return nil
	}
}

// leads reports whether a value of a type can be an informer, a cache or a ready function, or contain
// one. Within has the types that contain this type.
func leads(typ reflect.Type, within []reflect.Type) bool {
	for _, outer := range within {
		if typ == outer {
			return false
		}
	}
	within = append(within, typ)
	switch typ.Kind() {
	case reflect.Func:
		return typ == reflect.TypeFor[admission.ReadyFunc]() || typ == reflect.TypeFor[cache.InformerSynced]()
	case reflect.Interface:
		return typ.Implements(reflect.TypeFor[cache.Indexer]()) || isInformerPackage(typ.PkgPath())
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return leads(typ.Elem(), within)
	case reflect.Struct:
		for n := range typ.NumField() {
			if leads(typ.Field(n).Type, within) {
				return true
			}
		}
	}
	return false
}

// isInformerPackage reports whether a package has types for informers or listers: client-go,
// or what its generators make for other projects.
func isInformerPackage(path string) bool {
	return path == "k8s.io/client-go/tools/cache" || strings.Contains(path, "lister") || strings.Contains(path, "informer")
}
