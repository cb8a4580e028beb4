package minor

import (
	"context"
	"reflect"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Checker has the methods of cache.DoneChecker, which client-go has since 0.36.
type Checker interface {
	Name() string
	Done() <-chan struct{}
}

// SyncResult has the fields of cache.SyncResult, which client-go has since 0.36.
type SyncResult struct {
	Err    error
	Synced map[reflect.Type]bool
}

// since36 has the methods that interfaces of client-go have since 0.36, with the types of this
// package. [below36] embeds since36, one level deeper. If a struct embeds both below36 and an
// interface of client-go, Go selects the method of the interface if there is one, because it is
// embedded less deeply; otherwise it selects the method of since36. Go infers the result type of
// the selected method, so the code never names that type.
type since36 struct{}

func (since36) HasSyncedChecker() Checker                              { return nil }
func (since36) WaitForCacheSyncWithContext(context.Context) SyncResult { return SyncResult{} }

type (
	below36     struct{ since36 }
	anyInformer struct {
		cache.SharedIndexInformer
		below36
	}
	anyRegistration struct {
		cache.ResourceEventHandlerRegistration
		below36
	}
	anyController struct {
		cache.Controller
		below36
	}
	anyFactory struct {
		informers.SharedInformerFactory
		below36
	}
)

// Informer returns the informer with its method HasSyncedChecker replaced: it returns the result of
// checker. Before client-go 0.36, informers do not have this method and nothing calls it.
func Informer(informer cache.SharedIndexInformer, checker func() Checker) cache.SharedIndexInformer {
	return informerOf(anyInformer.HasSyncedChecker, informer, checker)
}

// Registration returns a registration that has only the method HasSyncedChecker. A call of another
// method panics, so the caller must declare these methods itself.
func Registration(checker func() Checker) cache.ResourceEventHandlerRegistration {
	return registrationOf(anyRegistration.HasSyncedChecker, checker)
}

// Controller is Informer for a controller.
func Controller(controller cache.Controller, checker func() Checker) cache.Controller {
	return controllerOf(anyController.HasSyncedChecker, controller, checker)
}

// Factory returns the factory with its method WaitForCacheSyncWithContext replaced: it returns the
// result of wait. Before client-go 0.36, factories do not have this method and nothing calls it.
func Factory(factory informers.SharedInformerFactory, wait func(context.Context) SyncResult) informers.SharedInformerFactory {
	return factoryOf(anyFactory.WaitForCacheSyncWithContext, factory, wait)
}

// hasSynced has the method HasSyncedChecker with the result type D of the compiled client-go.
type hasSynced[D any] struct{ checker func() Checker }

// HasSyncedChecker implements the interfaces of package cache.
func (h hasSynced[D]) HasSyncedChecker() D { return any(h.checker()).(D) }

// waits has the method WaitForCacheSyncWithContext with the result type R of the compiled
// client-go.
type waits[R any] struct {
	wait func(context.Context) SyncResult
}

// WaitForCacheSyncWithContext implements informers.SharedInformerFactory.
func (w waits[R]) WaitForCacheSyncWithContext(ctx context.Context) R {
	var result R
	got, to := reflect.ValueOf(w.wait(ctx)), reflect.ValueOf(&result).Elem()
	for i := range got.NumField() {
		to.FieldByName(got.Type().Field(i).Name).Set(got.Field(i))
	}
	return result
}

// These types embed the interfaces one level deeper than hasSynced and waits are embedded. So Go
// selects the methods of hasSynced and waits.
type (
	innerInformer     struct{ cache.SharedIndexInformer }
	innerRegistration struct {
		cache.ResourceEventHandlerRegistration
	}
	innerController struct{ cache.Controller }
	innerFactory    struct {
		informers.SharedInformerFactory
	}
)

func informerOf[D any](_ func(anyInformer) D, inner cache.SharedIndexInformer, checker func() Checker) cache.SharedIndexInformer {
	return any(struct {
		innerInformer
		hasSynced[D]
	}{innerInformer{inner}, hasSynced[D]{checker}}).(cache.SharedIndexInformer)
}

func registrationOf[D any](_ func(anyRegistration) D, checker func() Checker) cache.ResourceEventHandlerRegistration {
	return any(struct {
		innerRegistration
		hasSynced[D]
	}{hasSynced: hasSynced[D]{checker}}).(cache.ResourceEventHandlerRegistration)
}

func controllerOf[D any](_ func(anyController) D, inner cache.Controller, checker func() Checker) cache.Controller {
	return any(struct {
		innerController
		hasSynced[D]
	}{innerController{inner}, hasSynced[D]{checker}}).(cache.Controller)
}

func factoryOf[R any](_ func(anyFactory, context.Context) R, inner informers.SharedInformerFactory, wait func(context.Context) SyncResult) informers.SharedInformerFactory {
	return any(struct {
		innerFactory
		waits[R]
	}{innerFactory{inner}, waits[R]{wait}}).(informers.SharedInformerFactory)
}
