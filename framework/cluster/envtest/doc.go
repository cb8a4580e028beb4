// Package envtest starts an API server and etcd on this machine, for the cluster
// target, with controller-runtime's envtest.
//
// # Promise
//
// The server runs with kube-apiserver's own default plugins and feature gates,
// unless a [Profile] says otherwise. Its audit log is readable through
// [Server.Audit]. Stop leaves no process and no file.
//
// # Not promised
//
// There is no node and no controller: nothing schedules pods, removes the content
// of namespaces or creates ServiceAccounts. A process that is killed cannot stop
// the servers it started.
package envtest
