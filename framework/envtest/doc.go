// Package envtest starts an API server and etcd on this machine, by the package of the same name of
// controller-runtime, whose Environment it hands out. It adds profiles, the audit log, plugins and the promise below.
// It is public for tests that need an API server without scenarios.
//
// # Promise
//
// The server has kube-apiserver's default plugins and feature gates, unless a [Profile]
// changes them. [Server.Audit] reads its audit log.
//
// Stop leaves no process, and no file but controller-runtime's empty files for ports in the user's cache. If this
// process ends without Stop, for example by SIGKILL, a second interrupt, a panic or a closed terminal, the servers
// are killed at once and their files are removed.
//
// The servers do not get the environment of this process, so proxy variables have no effect on
// webhook calls. Other users of this machine cannot connect to etcd. kube-apiserver listens on
// the loopback address, and every request needs a client certificate or a token, unless RBAC
// allows it to everyone.
//
// # Not promised
//
// There are no nodes and no controllers: pods are not scheduled, the content of deleted
// namespaces is not removed, and no ServiceAccounts are created. The system must be POSIX,
// with a shell at /bin/sh, and /usr/bin/env.
package envtest
