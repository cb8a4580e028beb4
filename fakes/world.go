package fakes

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/fakes/internal/apiserver"
	"github.com/admissiontest/admissiontest/fakes/internal/informer"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
)

// World is a fake cluster whose clients and informers see the same objects. Make a World with
// NewWorld. Its methods are safe for concurrent use.
//
// When a write returns, the object is in the caches of Informers. Event handlers of informers run on another
// goroutine, one at a time, in the order of the writes. Put, Delete and the other methods by which
// a test changes objects wait until the handlers have returned. A Harness waits after each request.
// As with a real API server, a write by a client does not wait: see WaitHandlers.
//
// The authorizer of a World allows everything unless WithAuthorizer gives another one, such as Deny.
//
// A plugin can also make informers itself, with a factory of client-go and a client of the World. The
// methods that wait for event handlers then also wait until these informers have received all changes.
// Unsynced, MarkSynced, StaleCache and PutCache affect them too.
//
// Two versions of a resource are two separate resources: nothing is converted.
type World struct {
	t         framework.T
	kinds     *kinds.Registry
	store     *apiserver.Store
	cached    *apiserver.Store // what informers of plugins get with StaleCache; else nil
	server    *apiserver.Server
	informers *informer.Set

	client  func() (kubernetes.Interface, error)
	dynamic func() (dynamic.Interface, error)
	factory func() informers.SharedInformerFactory
	mapper  meta.RESTMapper

	// The lock of the store guards these, too.
	calls   []*apiserver.Call
	calling apiserver.Signal
	faults  []fault

	reporting sync.Once
}

// Option configures a World: see NewWorld.
type Option func(*config)

type config struct {
	objects  []runtime.Object
	schemes  []*runtime.Scheme
	mappings []meta.RESTMapping
	unsynced []runtime.Object
	stale    bool

	authorizer authorizer.Authorizer
}

// NewWorld returns a World. Without options it is empty. An option that cannot be used, such as an
// object whose type is in no scheme, ends the test with a message at the caller's line.
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
	registry, err := kinds.New(c.schemes, c.mappings)
	if err != nil {
		t.Fatalf("make World: %v", err)
	}
	w := newWorld(t, c, registry)
	ids, err := w.informerIDs(c.unsynced)
	if err != nil {
		t.Fatalf("make World: Unsynced: %v", err)
	}
	w.informers.MarkUnsynced(ids)
	if err := w.putFirst(c.objects); err != nil {
		t.Fatalf("make World: WithObjects: %v", err)
	}
	return w
}

func newWorld(t framework.T, c config, registry *kinds.Registry) *World {
	w := &World{t: t, kinds: registry, store: apiserver.NewStore(), mapper: registry.RESTMapper()}
	if c.stale {
		w.cached = apiserver.NewStore()
	}
	w.server = &apiserver.Server{Kinds: registry, Store: w.store, Authorizer: c.authorizer}
	w.informers = informer.New(informer.Options{
		Kinds: registry, Store: w.store, Stale: c.stale,
		AfterWrite: w.waitForHandlers, BeforeHandler: w.reportHandlers,
	})
	w.client = sync.OnceValues(func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(w.RESTConfig()) })
	w.dynamic = sync.OnceValues(func() (dynamic.Interface, error) { return dynamic.NewForConfig(w.RESTConfig()) })
	w.factory = sync.OnceValue(w.informers.Factory)
	return w
}

// WithObjects puts copies of objects into the store and the caches of the World. Two objects with the same kind, namespace
// and name are an error. A list is replaced
// by its items. The World sets the resource version of each object, and a UID if the object has
// none.
func WithObjects(objects ...runtime.Object) Option {
	return func(c *config) { c.objects = append(c.objects, objects...) }
}

// WithScheme adds a scheme for types that Kubernetes' own clients do not have. Their
// resources are namespaced and named by the lower-case plural of the kind, unless
// WithMappings says otherwise.
func WithScheme(scheme *runtime.Scheme) Option {
	return func(c *config) { c.schemes = append(c.schemes, scheme) }
}

// WithMappings adds resources to the World and its RESTMapper: custom resources, and resources of
// WithScheme that are cluster-scoped or have an unusual name. Objects whose kind is in no scheme
// are unstructured. Kind and resource need group, version and name, and each mapping needs a scope.
func WithMappings(mappings ...meta.RESTMapping) Option {
	return func(c *config) { c.mappings = append(c.mappings, mappings...) }
}

// Unsynced makes HasSynced of the informers of these types return false, and keeps their
// caches empty, until MarkSynced.
func Unsynced(types ...runtime.Object) Option {
	return func(c *config) { c.unsynced = append(c.unsynced, types...) }
}

// StaleCache makes caches that do not follow the store: clients see all objects, but caches have
// only the objects of PutCache.
func StaleCache() Option { return func(c *config) { c.stale = true } }

// WithAuthorizer sets the authorizer of the World. It decides SubjectAccessReviews and similar
// reviews, and an Initializer injects it into plugins that want an authorizer, unless
// InjectAuthorizer gives another one. Without this option, the authorizer allows everything: a test
// of what the plugin refuses needs fakes.WithAuthorizer(fakes.Deny()).
func WithAuthorizer(a authorizer.Authorizer) Option {
	return func(c *config) { c.authorizer = a }
}

// Client returns a typed client for the plugin. Each call returns the same client.
func (w *World) Client() kubernetes.Interface {
	w.t.Helper()
	client, err := w.client()
	if err != nil {
		w.t.Fatalf("make client of World: %v", err)
	}
	return client
}

// Dynamic returns a dynamic client for the plugin. Each call returns the same client.
func (w *World) Dynamic() dynamic.Interface {
	w.t.Helper()
	client, err := w.dynamic()
	if err != nil {
		w.t.Fatalf("make dynamic client of World: %v", err)
	}
	return client
}

// RESTConfig returns a client configuration for the plugin. Use it for generated clients of other
// projects, and for plugins that make their own clients. Each call returns a new configuration,
// which the caller may change.
func (w *World) RESTConfig() *rest.Config {
	config := &rest.Config{Host: "http://world.invalid", Transport: &transport{w: w}, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	return config
}

// TestClient returns a typed client for the test itself: see TestRESTConfig.
func (w *World) TestClient() kubernetes.Interface {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.TestRESTConfig())
	if err != nil {
		w.t.Fatalf("make client of World for the test: %v", err)
	}
	return client
}

// TestRESTConfig returns a client configuration for the test itself. Calls with it are not in
// Calls, FailOn and BlockOn do not affect them, and each call waits for event handlers, as Put
// does.
func (w *World) TestRESTConfig() *rest.Config {
	config := w.RESTConfig()
	config.Transport = &transport{w: w, test: true}
	return config
}

// Informers returns Kubernetes' generated informer factory with the informers of this World. Tests
// need not start the factory, wait for it or shut it down; to do so has no effect.
func (w *World) Informers() informers.SharedInformerFactory { return w.factory() }

// RESTMapper returns a mapper that has Kubernetes' own resources, with their real names and
// scopes, and the kinds of the World's schemes and mappings.
func (w *World) RESTMapper() meta.RESTMapper { return w.mapper }

// Authorizer returns the authorizer of the World.
func (w *World) Authorizer() authorizer.Authorizer { return w.server.Authorizer }

// Schemes returns the schemes of the World: the scheme of Kubernetes' own clients, then the schemes of
// WithScheme.
func (w *World) Schemes() []*runtime.Scheme {
	return w.kinds.Schemes()
}

// MarkSynced makes HasSynced of the informers of these types return true, and fills their
// caches from the store. Without types it does so for all informers.
func (w *World) MarkSynced(types ...runtime.Object) {
	w.t.Helper()
	ids, err := w.informerIDs(types)
	if err != nil {
		w.t.Fatalf("mark as synced: %v", err)
		return
	}
	w.informers.MarkSynced(ids)
	w.waitForHandlers()
}

// HasUnsynced reports whether caches are held back: Unsynced was given, and MarkSynced was not called
// for all its types.
func (w *World) HasUnsynced() bool { return w.informers.HasUnsynced() }

// ShuffleLists makes listers, and lists by clients, return objects in a random order that depends on the seed. Before
// the first call, objects are sorted by namespace and name. A plugin must not depend on either order.
func (w *World) ShuffleLists(seed uint64) {
	w.store.Lock()
	defer w.store.Unlock()
	w.store.Seed = &seed
}

// HasSyncedCalls returns how many times HasSynced was called on informers that had not synced. A
// test can use it to see whether a plugin waits for its caches. A call of Done on the checker that
// HasSyncedChecker returns counts as one call.
func (w *World) HasSyncedCalls() int { return w.informers.HasSyncedCalls() }

// WaitHasSynced waits until HasSyncedCalls is n or more. It returns false if the context ends
// first.
func (w *World) WaitHasSynced(ctx context.Context, n int) bool {
	return w.informers.WaitHasSynced(ctx, n)
}

// informerIDs returns the IDs of the informers of types.
func (w *World) informerIDs(types []runtime.Object) ([]any, error) {
	ids := make([]any, 0, len(types))
	for i, each := range types {
		if object.IsNil(each) {
			return nil, errNil(i, len(types))
		}
		id, err := w.informers.ID(each)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
