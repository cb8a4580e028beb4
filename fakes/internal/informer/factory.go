package informer

import (
	"context"
	"reflect"
	"time"

	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// factory is Kubernetes' generated factory with the informers of a Set.
type factory struct {
	informers.SharedInformerFactory
	set *Set
}

// Factory returns Kubernetes' generated informer factory with these informers. Starting the
// factory, waiting for it and shutting it down have no effect.
func (s *Set) Factory() informers.SharedInformerFactory {
	made := informers.NewSharedInformerFactory(nil, 0)
	types := s.kinds.Builtin().AllKnownTypes()
	for gvk, typ := range types {
		gvk.Kind += "List"
		if _, listed := types[gvk]; !listed || !kinds.HasMetadata(typ) {
			continue
		}
		if object, ok := reflect.New(typ).Interface().(runtime.Object); ok {
			inf := s.informer(idOf(object))
			made.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return inf })
		}
	}
	f := &factory{set: s}
	f.SharedInformerFactory = minor.Factory(made, f.waitWithContext)
	return f
}

// InformerFor returns the informer of the Set. It does not call the function that would make
// another informer.
func (f *factory) InformerFor(object runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	inf := f.set.informer(idOf(object))
	return f.SharedInformerFactory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return inf })
}

// ForResource returns the informer of a known resource, which can be a custom resource.
func (f *factory) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	made, err := f.SharedInformerFactory.ForResource(resource)
	if err == nil {
		return made, nil
	}
	k := f.set.kinds.ByResource(resource)
	if k == nil {
		return nil, err
	}
	return resourceInformer{f.set.informer(idOfKind(k)), resource.GroupResource()}, nil
}

type resourceInformer struct {
	inf      *Informer
	resource schema.GroupResource
}

// Informer implements informers.GenericInformer.
func (g resourceInformer) Informer() cache.SharedIndexInformer { return g.inf }

// Lister implements informers.GenericInformer.
func (g resourceInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.inf.GetIndexer(), g.resource)
}

// Start does nothing: there is nothing to start.
func (f *factory) Start(<-chan struct{}) {}

// StartWithContext does nothing.
func (f *factory) StartWithContext(context.Context) {}

// Shutdown does nothing.
func (f *factory) Shutdown() {}

// WaitForCacheSync waits for the informers that are in use.
func (f *factory) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.wait(stop)
}

// waitWithContext is WaitForCacheSyncWithContext, which waits for the informers in use.
func (f *factory) waitWithContext(ctx context.Context) minor.SyncResult {
	result := minor.SyncResult{Synced: f.wait(ctx.Done())}
	for _, synced := range result.Synced {
		if !synced {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

func (f *factory) wait(stop <-chan struct{}) map[reflect.Type]bool {
	used := map[reflect.Type]*Informer{}
	f.set.store.Lock()
	for id, inf := range f.set.informers {
		if typ, ok := id.(reflect.Type); ok && inf.touched {
			used[typ] = inf
		}
	}
	f.set.store.Unlock()
	result := make(map[reflect.Type]bool, len(used))
	for typ, inf := range used {
		select {
		case <-checker{inf}.Done():
			result[typ] = true
		case <-stop:
			result[typ] = inf.HasSynced()
		}
	}
	return result
}
