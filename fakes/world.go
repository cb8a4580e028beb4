package fakes

import (
	"context"
	"reflect"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// World is one consistent fake cluster. Make it with NewWorld. Its methods are safe for
// concurrent use.
//
// When a write returns, the object is in the caches. Event handlers of informers run on another
// goroutine, one at a time, in the order of the writes. Put, Delete and the other methods by which
// a test changes objects wait until the handlers have returned, and so does a Harness after each
// request. A write of a client does not wait, as on a server: see WaitHandlers.
//
// Two versions of a resource are two separate resources: nothing is converted.
type World struct {
	t     framework.T
	kinds *kinds
	stale bool

	authorizer authorizer.Authorizer
	keys       cache.KeyFunc // of the caches
	ownKeys    bool

	client  func() (kubernetes.Interface, error)
	dynamic func() (dynamic.Interface, error)
	factory func() informers.SharedInformerFactory
	mapper  meta.RESTMapper

	mu       sync.Mutex
	store    store
	caches   map[any]*informer // by cacheID
	unsynced map[any]bool      // by cacheID
	calls    []*Call
	calling  signal
	faults   []fault
	handed   []*item
	epoch    uint64
	shuffle  *uint64
	asked    int
	asking   signal
	events   events

	reporting sync.Once
}

// Option configures a World. NewWorld takes them.
type Option func(*config)

type config struct {
	objects  []runtime.Object
	schemes  []*runtime.Scheme
	mappings []meta.RESTMapping
	unsynced []runtime.Object
	stale    bool

	authorizer authorizer.Authorizer
	keys       cache.KeyFunc
}

// NewWorld returns a World. An option that it cannot use, such as an object whose type is in
// no scheme, ends the test with a message at the caller's line.
func NewWorld(t framework.T, options ...Option) *World {
	t.Helper()
	c := config{schemes: []*runtime.Scheme{clientscheme.Scheme}, authorizer: Allow()}
	for i, option := range options {
		if option == nil {
			t.Fatalf("make World: option %d of %d is nil: expected one such as fakes.WithObjects(…), leave it out or call the function", i+1, len(options))
			continue
		}
		option(&c)
	}
	if missing(c.authorizer) {
		t.Fatalf("make World: WithAuthorizer: the authorizer is nil: give one such as fakes.Deny(), or leave it out")
	}
	w := &World{t: t, stale: c.stale, authorizer: c.authorizer, caches: map[any]*informer{}, unsynced: map[any]bool{}, store: newStore()}
	w.setKeys(c.keys)
	kinds, err := newKinds(c.schemes, c.mappings)
	if err != nil {
		t.Fatalf("make World: %v", err)
	}
	w.kinds = kinds
	w.client = sync.OnceValues(w.newClient)
	w.dynamic = sync.OnceValues(w.newDynamic)
	w.factory = sync.OnceValue(w.newFactory)
	w.mapper = quickMapper{meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) { return newMapper(w.kinds), nil }), w.kinds}
	ids, err := w.cacheIDs(c.unsynced)
	if err != nil {
		t.Fatalf("make World: Unsynced: %v", err)
	}
	for _, id := range ids {
		w.unsynced[id] = true
	}
	if err := w.put(c.objects); err != nil {
		t.Fatalf("make World: WithObjects: %v", err)
	}
	return w
}

// WithObjects puts copies of objects into the World's store and caches. Of a list, it puts
// the items. The World sets resource versions, and UIDs where an object has none.
func WithObjects(objects ...runtime.Object) Option {
	return func(c *config) { c.objects = append(c.objects, objects...) }
}

// WithScheme adds a scheme for types that Kubernetes' own clients do not have. Their
// resources are namespaced and named by the lower-case plural of the kind, unless
// WithMappings says otherwise.
func WithScheme(scheme *runtime.Scheme) Option {
	return func(c *config) { c.schemes = append(c.schemes, scheme) }
}

// WithMappings adds resources to the RESTMapper: custom resources, and resources that are
// cluster-scoped or not named by the lower-case plural of their kind. Objects whose kind is
// in no scheme are unstructured. A mapping without a scope is namespaced.
func WithMappings(mappings ...meta.RESTMapping) Option {
	return func(c *config) { c.mappings = append(c.mappings, mappings...) }
}

// Unsynced makes HasSynced of the informers of these types return false, and keeps their
// caches empty, until MarkSynced.
func Unsynced(types ...runtime.Object) Option {
	return func(c *config) { c.unsynced = append(c.unsynced, types...) }
}

// StaleCache makes caches that are behind: clients read all objects, and the caches hold
// only what PutCache puts there.
func StaleCache() Option { return func(c *config) { c.stale = true } }

// WithCacheKeys sets the keys of the objects in the caches, for listers that expect others than
// namespace and name. kcp's cluster-aware listers need kcp's MetaClusterNamespaceKeyFunc. Objects
// that are given to Preload or PreloadAs are then only in the caches, because clients do not see
// the cluster of an object.
func WithCacheKeys(key cache.KeyFunc) Option { return func(c *config) { c.keys = key } }

func (w *World) setKeys(key cache.KeyFunc) {
	w.keys, w.ownKeys = cache.DeletionHandlingMetaNamespaceKeyFunc, key != nil
	if key == nil {
		return
	}
	w.keys = func(object any) (string, error) {
		if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
			return lost.Key, nil
		}
		return key(object)
	}
}

// Client returns the typed client, for the plugin.
func (w *World) Client() kubernetes.Interface {
	w.t.Helper()
	client, err := w.client()
	if err != nil {
		w.t.Fatalf("make client of World: %v", err)
	}
	return client
}

// Dynamic returns the dynamic client.
func (w *World) Dynamic() dynamic.Interface {
	w.t.Helper()
	client, err := w.dynamic()
	if err != nil {
		w.t.Fatalf("make dynamic client of World: %v", err)
	}
	return client
}

// RESTConfig returns the configuration of a client for the plugin, for the generated clients
// of other projects and for plugins that make their own clients. Each call returns a new one,
// which the caller may change.
func (w *World) RESTConfig() *rest.Config {
	config := &rest.Config{Host: "http://world.invalid", Transport: &roundTripper{w: w}, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	return config
}

// TestClient returns a typed client for the test itself: see TestRESTConfig.
func (w *World) TestClient() kubernetes.Interface {
	w.t.Helper()
	client, err := newClient(w.TestRESTConfig())
	if err != nil {
		w.t.Fatalf("make client of World for the test: %v", err)
	}
	return client
}

// TestRESTConfig is RESTConfig for the test itself: calls are not in Calls, FailOn and BlockOn do
// not affect them, and they wait for event handlers, as Put does.
func (w *World) TestRESTConfig() *rest.Config {
	config := w.RESTConfig()
	config.Transport = &roundTripper{w: w, test: true}
	return config
}

func (w *World) newClient() (kubernetes.Interface, error) { return newClient(w.RESTConfig()) }

func newClient(config *rest.Config) (kubernetes.Interface, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfigAndClient(config, http)
}

func (w *World) newDynamic() (dynamic.Interface, error) {
	config := w.RESTConfig()
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfigAndClient(config, http)
}

// Informers returns Kubernetes' generated informer factory with the informers of this World.
// It is not necessary to start it, to wait for it or to shut it down, and it does no harm.
func (w *World) Informers() informers.SharedInformerFactory { return w.factory() }

// RESTMapper returns a mapper that has Kubernetes' own resources, with their real names and
// scopes, and those of the World's schemes and mappings.
func (w *World) RESTMapper() meta.RESTMapper { return w.mapper }

// Schemes returns the schemes of the World: that of Kubernetes' own clients, then those of
// WithScheme.
func (w *World) Schemes() []*runtime.Scheme {
	return append([]*runtime.Scheme(nil), w.kinds.schemes...)
}

// Put stores copies of objects and puts them into the caches. An object replaces the one
// with the same kind, namespace and name.
func (w *World) Put(objects ...runtime.Object) {
	w.t.Helper()
	if err := w.put(objects); err != nil {
		w.t.Fatalf("put into World: %v", err)
	}
}

func (w *World) put(objects []runtime.Object) error {
	prepared, err := w.prepareAll(objects)
	if err != nil {
		return err
	}
	w.mu.Lock()
	for _, p := range prepared {
		if err := w.putLocked(p.kind, p.object); err != nil {
			w.mu.Unlock()
			return err
		}
	}
	w.mu.Unlock()
	w.waitForHandlers()
	return nil
}

// PutCache puts copies of objects into the caches only, as if they had been deleted since.
// It does so also for caches that are stale or have not synced. The objects keep their
// resource version and UID.
func (w *World) PutCache(objects ...runtime.Object) {
	w.t.Helper()
	prepared, err := w.prepareAll(objects)
	if err != nil {
		w.t.Fatalf("put into caches of World: %v", err)
		return
	}
	w.mu.Lock()
	for _, p := range prepared {
		inf := w.informerLocked(cacheID(p.object))
		inf.fillLocked()
		inf.setLocked(p.object)
	}
	w.mu.Unlock()
	w.waitForHandlers()
}

// MarkSynced makes HasSynced of the informers of these types return true, and fills their
// caches from the store. Without types it does so for all informers.
func (w *World) MarkSynced(types ...runtime.Object) {
	w.t.Helper()
	ids, err := w.cacheIDs(types)
	if err != nil {
		w.t.Fatalf("mark as synced: %v", err)
		return
	}
	w.mu.Lock()
	if len(types) == 0 {
		for id := range w.unsynced {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		delete(w.unsynced, id)
		if inf := w.caches[id]; inf != nil {
			inf.markSyncedLocked()
		}
	}
	w.mu.Unlock()
	w.waitForHandlers()
}

// ShuffleLists makes listers return objects in an order that depends on the seed. Without
// it, objects are sorted by namespace and name. No plugin may rely on that order.
func (w *World) ShuffleLists(seed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shuffle = &seed
}

// HasSyncedCalls returns how many times HasSynced was called on informers that had not
// synced. It shows a test whether a plugin waits. A call of Done on the checker of
// HasSyncedChecker counts once.
func (w *World) HasSyncedCalls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// WaitHasSynced waits until HasSyncedCalls is n or more. It returns false if the context ends
// first.
func (w *World) WaitHasSynced(ctx context.Context, n int) bool {
	for {
		w.mu.Lock()
		asked, next := w.asked, w.asking.wait()
		w.mu.Unlock()
		if asked >= n {
			return true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}

// cacheIDs returns the keys of World.caches for these types.
func (w *World) cacheIDs(types []runtime.Object) ([]any, error) {
	ids := make([]any, 0, len(types))
	for i, object := range types {
		if objects.IsNil(object) {
			return nil, errNil(i, len(types))
		}
		id := cacheID(object)
		if gvk, ok := id.(schema.GroupVersionKind); ok {
			k, err := w.kinds.byKind(gvk)
			if err != nil {
				return nil, err
			}
			if k.typ != nil {
				id = reflect.PointerTo(k.typ)
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// signal wakes any number of goroutines after a change. It is guarded by the World's lock.
type signal struct{ next chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

func (s *signal) raise() {
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}
