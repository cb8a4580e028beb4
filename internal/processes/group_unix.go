//go:build unix

package processes

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach starts a command in its own process group: the terminal sends it no signals. (Its own
// session would be one more, but Linux schedules sessions separately, and starts get slower.)
func Detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Terminate sends SIGTERM to the process group of a Guarded command. The guard is in the group and ignores
// the signal, so the group exists until the pipe is closed.
func Terminate(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGTERM) }

// Kill sends SIGKILL to the process group of a Guarded command, the guard included. The pipe must still
// be open.
func Kill(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGKILL) }
