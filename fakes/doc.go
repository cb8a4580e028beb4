// Package fakes has a small fake cluster for unit tests of compiled-in admission plugins, and an
// initializer that injects into a plugin what an API server injects.
//
// A [World] is the fake cluster. Its typed client, its dynamic client and its informers all see the
// same objects:
//
//	w := fakes.NewWorld(t, fakes.WithObjects(namespace, pod))
//	plugin.SetExternalKubeClientSet(w.Client())
//	plugin.SetExternalKubeInformerFactory(w.Informers())
//
// Informers have no reflector: an object is in the cache as soon as [World.Put] returns. A test
// starts nothing and waits for nothing. With the option [Unsynced], a cache has not synced; with
// [StaleCache], caches do not follow the store. [Preload] puts informers of a World into an
// informer factory that another project generated.
//
// An [Initializer] injects these clients, informers and other values as an API server does, and
// records what it injected. With [Initializer.Strict] it also reports what a plugin wants and did
// not get.
//
// The package is public for unit tests of plugins, with package harness or without it.
//
// # Promise
//
// Clients send HTTP requests to a server inside this process. So objects are encoded and copied,
// errors are real Status objects, a call ends when its context is cancelled, and every generated
// client works ([World.RESTConfig]). Every call of these clients is recorded ([World.Calls]). A
// change that a plugin makes to a cached object is found, with the object and the field
// ([Snapshot.Mutations]). No goroutine outlives a call, except one that calls event handlers and
// ends when they have returned ([World.WaitHandlers]).
//
// # Not promised
//
// A World is not an API server. It stores an object as given, with a numeric resource version and a
// UID. It does not set defaults, validate, convert, or run admission. It has no controllers and no
// garbage collector. Two versions of a resource are two separate resources.
//
// Finalizers, deletion timestamps and conflicts of server-side apply are as on an API server. A list is
// always whole, whatever its limit. There are two more exceptions: a pod is deleted without a grace period, and the owners of an
// object's fields are tracked only from its first apply on. OpenAPI v3 has only Kubernetes' own
// types.
package fakes
