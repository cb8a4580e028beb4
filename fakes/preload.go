package fakes

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/internal/object"
)

// Preload gives a generated informer factory, of any project and any client type, informers
// of this World for the types of the objects, and puts the objects into the World as Put
// does. N and C are inferred. Of an object without a name, Preload uses only the type.
//
// Call it before the first use of an informer of the factory. Objects whose type is in none
// of the World's schemes are only in the cache: clients do not see them.
func Preload[N ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	w *World, factory interface {
		InformerFor(runtime.Object, N) cache.SharedIndexInformer
	}, objects ...runtime.Object,
) {
	w.t.Helper()
	for i, each := range objects {
		if object.IsNil(each) {
			w.t.Fatalf("preload informers: %v", errNil(i, len(objects)))
			return
		}
		inf := w.informerOf(each)
		made := factory.InformerFor(each, N(func(C, time.Duration) cache.SharedIndexInformer { return inf }))
		if made != cache.SharedIndexInformer(inf) {
			w.t.Fatalf("preload informers: the factory has another informer of %T already: call Preload before the first use of its informers", each)
			return
		}
		if err := w.preload(inf, each); err != nil {
			w.t.Fatalf("preload informers: %v", err)
			return
		}
	}
}

func (w *World) informerOf(object runtime.Object) *informer {
	w.mu.Lock()
	defer w.mu.Unlock()
	inf := w.informerLocked(cacheID(object))
	inf.readyLocked()
	return inf
}

func (w *World) preload(inf *informer, object runtime.Object) error {
	switch name := metadata(object).GetName(); {
	case name == "":
		return nil
	case inf.kind != nil:
		return w.put([]runtime.Object{object})
	}
	w.mu.Lock()
	inf.fillLocked()
	inf.setLocked(object.DeepCopyObject())
	w.mu.Unlock()
	w.settle()
	return nil
}
