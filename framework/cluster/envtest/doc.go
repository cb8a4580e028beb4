// Package envtest starts an API server and etcd on this machine, with controller-runtime's
// envtest. It is public for programs that use package cluster with their own API server.
//
// # Promise
//
// The server has kube-apiserver's default plugins and feature gates, unless a [Profile]
// changes them. [Server.Audit] reads its audit log. Stop leaves no process and no file.
//
// # Not promised
//
// There are no nodes and no controllers: pods are not scheduled, the content of deleted
// namespaces is not removed, and no ServiceAccounts are created. If this process is killed,
// the servers keep running.
package envtest
