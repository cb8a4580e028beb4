// Package fakes is one small, honest cluster for the tests of compiled-in
// admission plugins, and everything an API server would inject into them.
//
// A [World] holds objects. Its typed client, its dynamic client, its informers and
// its RESTMapper all speak of the same ones:
//
//	w := fakes.NewWorld(t, fakes.WithObjects(namespace, pod))
//	plugin.SetExternalKubeClientSet(w.Client())
//	plugin.SetExternalKubeInformerFactory(w.Informers())
//
// Informers have no reflector behind them: what is Put is in the cache at once, with
// nothing to start and nothing to wait for. That a cache is not ready, or behind, is
// a switch ([Unsynced], [StaleCache]). Informer factories that another project has
// generated are filled by [Preload].
//
// An [Initializer] injects all of it as an API server does, notes what was injected
// and, [Initializer.Strict], tells what was not.
//
// # Promise
//
// Clients speak HTTP to a server inside this process, so objects are encoded and
// copied, errors are real Status objects, the context of a call arrives, a canceled
// one ends it, and any generated client works ([World.RESTConfig]). No goroutine
// outlives a call. Every call is recorded ([World.Calls]), every change to a cached
// object is found and named ([Snapshot.Mutations]).
//
// # Not promised
//
// A World is not an API server: it stores what it is given, with a numeric resource
// version and a UID; it defaults, validates, converts and admits nothing, has no
// finalizers, no owners of fields (an apply merges), no pages of lists, and runs no
// controller. Each version of a resource is a resource of its own.
package fakes
