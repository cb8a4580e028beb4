// Package fakes is a small fake cluster for the tests of compiled-in admission plugins,
// with everything that an API server injects into them.
//
// A [World] holds objects. Its typed client, its dynamic client, its informers and its
// RESTMapper all read the same ones:
//
//	w := fakes.NewWorld(t, fakes.WithObjects(namespace, pod))
//	plugin.SetExternalKubeClientSet(w.Client())
//	plugin.SetExternalKubeInformerFactory(w.Informers())
//
// Informers have no reflector. An object is in the cache as soon as [World.Put] returns:
// there is nothing to start and nothing to wait for. Options make a cache that has not
// synced ([Unsynced]) or that is behind ([StaleCache]). [Preload] fills informer factories
// that another project generated.
//
// An [Initializer] injects all of this as an API server does, and records what it injected.
// With [Initializer.Strict] it also reports what a plugin wants and did not get.
//
// The package is public for unit tests of plugins, with package harness or without it.
//
// # Promise
//
// Clients send HTTP to a server inside this process. So objects are encoded and copied,
// errors are real Status objects, cancelling the context of a call ends the call, and every
// generated client works ([World.RESTConfig]). No goroutine outlives a call, except one that
// calls event handlers and ends when they have returned ([World.WaitHandlers]). Every call is
// recorded ([World.Calls]). Every change to a cached object is found, with its object and
// field ([Snapshot.Mutations]).
//
// # Not promised
//
// A World is not an API server. It stores what it gets, with a numeric resource version and
// a UID. It does not default, validate, convert or admit. Finalizers, deletion timestamps, chunks
// of lists and the conflicts of server-side apply are as on a server, except that a pod is deleted
// without a grace period, and that the owners of an object's fields are tracked from its first
// apply on. OpenAPI v3 has Kubernetes' own types only. There are no controllers and no garbage
// collector. Two versions of a resource are two separate resources.
package fakes
