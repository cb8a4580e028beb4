package fakes

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes/internal/informer"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Preload makes a generated informer factory use informers of this World for the types of the
// objects, and puts the objects into the World as Put does. The factory can be that of any project,
// with any client type; Go infers N and C. To preload a type without an object, give an object
// without a name.
//
// Call Preload before the first use of an informer of the factory; otherwise it ends the test.
// Objects whose type is in none of the World's schemes are only in the cache: clients do not see
// them.
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
		inf, ours := w.informers.Informer(each), false
		made := factory.InformerFor(each, N(func(C, time.Duration) cache.SharedIndexInformer {
			ours = true
			return inf
		}))
		if index := made.GetIndexer(); !ours && !inf.Owns(index) {
			w.t.Fatalf("preload informers: the factory has another informer of %T already: call Preload before the first use of its informers", each)
			return
		}
		if err := w.preload(inf, each); err != nil {
			w.t.Fatalf("preload informers: %v", err)
			return
		}
	}
}

func (w *World) preload(inf *informer.Informer, object runtime.Object) error {
	switch name := kinds.Metadata(object).GetName(); {
	case name == "":
		return nil
	case inf.Kind() != nil:
		return w.put([]runtime.Object{object})
	}
	w.informers.Put(object.DeepCopyObject())
	w.waitForHandlers()
	return nil
}
