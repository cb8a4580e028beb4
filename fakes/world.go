package fakes

import (
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// World is one consistent fake cluster. Its methods are safe to call from many
// goroutines.
type World struct{ t framework.T }

// Option says what a World is made of.
type Option func(*config)

type config struct{}

// NewWorld returns a World. What it cannot hold (an object of a type that no scheme
// knows) ends the test with a message at the caller's line.
func NewWorld(t framework.T, options ...Option) *World { t.Helper(); return &World{t: t} }

// WithObjects puts objects into the World: stored, and in the caches.
func WithObjects(objects ...runtime.Object) Option { return nil }

// WithScheme adds a scheme for types that Kubernetes' own clients do not know.
func WithScheme(scheme *runtime.Scheme) Option { return nil }

// WithMappings tells the RESTMapper of resources: of custom ones, or of kinds whose
// resource is not their lower-case plural or that are cluster-scoped.
func WithMappings(mappings ...meta.RESTMapping) Option { return nil }

// Unsynced has the informers of these types say that they have not synced, and
// keeps their caches empty until MarkSynced.
func Unsynced(types ...runtime.Object) Option { return nil }

// StaleCache has clients see the objects, and caches not.
func StaleCache() Option { return nil }

// Client returns the typed client.
func (w *World) Client() kubernetes.Interface { return nil }

// Dynamic returns the dynamic client.
func (w *World) Dynamic() dynamic.Interface { return nil }

// RESTConfig returns the configuration of a client of this World, for generated
// clients of other projects and for plugins that make their own.
func (w *World) RESTConfig() *rest.Config { return nil }

// Informers returns Kubernetes' generated informer factory over this World.
func (w *World) Informers() informers.SharedInformerFactory { return nil }

// RESTMapper returns a mapper that knows Kubernetes' own resources, by their real
// names and scopes, and those of the World's schemes and mappings.
func (w *World) RESTMapper() meta.RESTMapper { return nil }

// Put stores objects, in place of those of the same name, and puts them into the caches.
func (w *World) Put(objects ...runtime.Object) {}

// PutCache puts objects into the caches only, as if deleted since.
func (w *World) PutCache(objects ...runtime.Object) {}

// MarkSynced has the informers of these types say that they have synced, and fills
// their caches from what is stored. Without types it does so for all.
func (w *World) MarkSynced(types ...runtime.Object) {}

// FailOn has calls fail. A verb or resource of "*" means every one; a subresource is
// written "pods/status".
func (w *World) FailOn(verb, resource string, err error) {}

// BlockOn has calls wait until release is called or their context has ended.
func (w *World) BlockOn(verb, resource string) (release func()) { return func() {} }

// Calls returns the calls that clients have made so far.
func (w *World) Calls() Calls { return nil }

// Snapshot notes the moment, for Mutations.
func (w *World) Snapshot() *Snapshot { return nil }

// ShuffleLists has listers return objects in another order: of a seed.
func (w *World) ShuffleLists(seed uint64) {}

// HasSyncedCalls returns how often a plugin has asked an informer whether it has
// synced, so that a test can tell one that waits from one that does not.
func (w *World) HasSyncedCalls() int { return 0 }

// Preload fills a generated informer factory, of any project and any client type,
// with informers of this World for the types of these objects, and Puts the objects
// into their caches. N and C are inferred.
func Preload[N ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	w *World, factory interface {
		InformerFor(runtime.Object, N) cache.SharedIndexInformer
	}, objects ...runtime.Object,
) {
}
