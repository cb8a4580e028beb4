// Package apiserver is the Target for any API server that a rest.Config reaches.
//
// A [Target] runs many scenarios at the same time, each in its own [Sandbox]. A Sandbox
// has a namespace. Objects are installed in it ([Sandbox.Install]), and after
// [Target.WaitUntilEffective] the API server acts on them. Then requests are sent
// ([Sandbox.Do]); each Result has the webhook calls made for it.
//
// Package envtest starts an API server, package kind a cluster, and package binaries
// finds, downloads or builds the binaries. The rooms below have one job each: client (talking to the API
// server), install (installing and narrowing, and refusing what could affect other clients) and fence (waiting until the
// API server acts). This package itself also removes what runs created: removal.go.
//
// # Promise
//
//   - Requests of other clients do not reach a Hook and are not changed by an installed
//     policy: every webhook configuration and policy is narrowed to its Sandbox before it
//     is written.
//   - There are no fixed waits: WaitUntilEffective writes a sentinel of each kind and
//     sends dry-run requests until each sentinel leaves its mark.
//   - Everything created has the label RunLabel. Close removes it and waits until it is
//     gone; Cleanup removes it after the process was killed.
//
// # Not promised
//
// A cluster can have several API servers at one address. Then several requests in a row on new connections must find what
// was installed effective: a load balancer can have sent all of them to the same one.
package apiserver
