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

// since36 has the methods that interfaces of client-go have since 0.36, with the types
// of this package. [below36] embeds it. Go selects the method that is embedded less
// deeply, so a struct that embeds below36 and an interface of client-go has the
// interface's method if there is one, and else that of since36. The type that such a
// method returns is then inferred, and never named.
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

// Informer returns the informer with another method HasSyncedChecker, which returns what
// checker returns. Before client-go 0.36 nothing calls it.
func Informer(informer cache.SharedIndexInformer, checker func() Checker) cache.SharedIndexInformer {
	return informerOf(anyInformer.HasSyncedChecker, informer, checker)
}

// Registration returns a registration with the method HasSyncedChecker alone: a call of
// another one panics, so the caller declares them.
func Registration(checker func() Checker) cache.ResourceEventHandlerRegistration {
	return registrationOf(anyRegistration.HasSyncedChecker, checker)
}

// Controller is as Informer, for a controller.
func Controller(controller cache.Controller, checker func() Checker) cache.Controller {
	return controllerOf(anyController.HasSyncedChecker, controller, checker)
}

// Factory returns the factory with another method WaitForCacheSyncWithContext, which
// returns what wait returns. Before client-go 0.36 nothing calls it.
func Factory(factory informers.SharedInformerFactory, wait func(context.Context) SyncResult) informers.SharedInformerFactory {
	return factoryOf(anyFactory.WaitForCacheSyncWithContext, factory, wait)
}

// hasSynced has the method with the result type of the client-go compiled against.
type hasSynced[D any] struct{ checker func() Checker }

// HasSyncedChecker implements the interfaces of package cache.
func (h hasSynced[D]) HasSyncedChecker() D { return any(h.checker()).(D) }

// waits has the method with the result type of the client-go compiled against.
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

// The interfaces are one struct deeper than hasSynced and waits, whose methods Go
// therefore selects.
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
