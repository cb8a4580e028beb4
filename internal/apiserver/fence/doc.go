// Package fence waits until an API server acts on everything that was written before.
//
// An API server reads webhook configurations and policies through caches, so a write
// becomes effective some time later. A fence writes one more object of each kind, a
// sentinel, and sends dry-run requests until each sentinel leaves its mark on a
// response. The server sees the writes of one kind in their order, so everything that
// was written before a sentinel is effective when the sentinel is. Policies are reread
// every second (k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go).
//
// It also finds out whether an API server reaches webhooks at all: a Hook server, by an address of this machine
// ([HookServers]). And it waits for the webhooks under test that Hooks call ([Webhooks]).
package fence
