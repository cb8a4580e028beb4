// Package processes is about this process and those that it starts.
//
// [Guarded] starts programs that do not outlive this process, and [StartProgram] the program of a webhook under test
// beside a run. [ReservePort] reserves a port for a server that starts later, and a [Limit] limits the number of open
// connections. A [PauseWatch] notices pauses of this process: it was stopped (SIGSTOP, a debugger), its container was
// frozen, or the machine slept. A [Label] finds the goroutines that a piece of code started, and [UntilDone] leaves one
// that does not end.
//
// # Promise
//
// A program and the processes of its group end with [Program.Stop], and also when this process ends, even by SIGKILL.
// So do the kubeconfig file and the certificates that it gets. A limit of [WithTimeout] does not end because of a
// pause, and a PauseWatch notices each pause that is longer than [ShortestPause].
//
// # Not promised
//
// A process that leaves its process group outlives this one. A goroutine that replaces its own profiler labels is not
// found. A machine that has too much to do is like a short pause.
package processes
