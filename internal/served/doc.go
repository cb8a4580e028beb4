// Package served keeps an API server on this machine for several runs, one after another.
//
// A [Server] is used by one run at a time. When the run ends, also by SIGKILL, the Server makes
// everything that the API server has stored what it was before the run, and waits until the API
// server acts on that. So the next run finds what the first one found.
//
// [Run] offers a Server to other processes of the same user; [Find] finds it. They meet at a Unix
// socket whose name is the [Key] of the server, so no file can have outdated content. If no process
// listens on a socket, a killed process left it, and it is removed.
//
// # Not promised
//
// What other clients write while a run uses the server is undone at the end of the run.
package served
