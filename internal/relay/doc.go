// Package relay forwards the webhook calls of an API server through a Service and a pod of
// its cluster to the Hook server of this process. The API server need not reach this process.
//
//	hooks, err := hook.Start(ctx, hook.Options{})
//	service, err := relay.Start(ctx, relay.Options{Config: config, Run: run, Image: image, Hooks: hooks})
//	defer service.Close(ctx)
//	target, err := apiserver.New(ctx, apiserver.Options{
//		Config: config, Run: run, Hooks: hooks, ClientConfig: service.ClientConfig, HooksErr: service.Err,
//	})
//
// The pod forwards each connection unchanged through one channel (pods/portforward) to this
// process. See docs/adr/0003-hooks-inside-the-cluster.md.
//
// # Promise
//
//   - The Hook server of this process runs all scripts, Faults and barriers and has the
//     recordings. TLS ends in it. The pod has no key, no access to the API and no state.
//     BuildImage makes its image without Docker: the Go toolchain compiles one static binary, and this package writes the
//     layer. The same source and toolchain give the same image, byte for byte.
//   - All objects are in one namespace, which has the label apiserver.RunLabel and enforces the
//     Pod Security Standard "restricted". If Start fails, it returns the reason within a
//     minute and removes the namespace.
//   - If the channel breaks, another is opened. Active calls fail; new calls wait. If no
//     channel can be opened, Err returns the reason.
//
// # Not promised
//
// There is one pod. If its node fails, the Hooks are not reachable until another pod is
// scheduled. A NetworkPolicy that blocks the API server from pods in new namespaces also
// blocks it from this pod.
package relay
