// Package relay leads the webhook calls of an API server through a pod and a
// Service of its cluster to a Hook server of this process, which the API server
// need not be able to reach.
//
//	hooks, err := hook.Start(ctx, hook.Options{})
//	through, err := service.Start(ctx, service.Options{Config: config, Run: run, Image: image, Hooks: hooks})
//	defer through.Close(ctx)
//	target, err := cluster.New(ctx, cluster.Options{
//		Config: config, Run: run, Hooks: hooks, ClientConfig: through.ClientConfig, HooksErr: through.Err,
//	})
//
// The pod is a relay: it passes each connection, as it is, through one channel
// (pods/portforward) to this process. See docs/adr/0003-hooks-inside-the-cluster.md.
//
// # Promise
//
//   - Scripts, Faults, barriers and recordings are those of package hook: there is
//     one implementation, here, and TLS ends in it. The pod has no key, no access to
//     the API and no state; its image is package image's.
//   - Everything is in one namespace, which carries cluster.RunLabel and accepts
//     only pods of the level restricted. Start removes it again when it fails, and
//     says within a minute why the pod does not work.
//   - A channel that breaks is dialled anew. Calls under way are lost then; those
//     that come meanwhile wait. When it cannot be dialled, Err says so.
//
// # Not promised
//
// One pod, so one node: a cluster that loses it has no Hooks until another is
// scheduled. A NetworkPolicy that keeps the API server from the pods of a new
// namespace keeps it from this one too.
package relay
