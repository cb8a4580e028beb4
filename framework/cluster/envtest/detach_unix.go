//go:build unix

package envtest

import (
	"os"
	"os/exec"
	"syscall"
)

// detach starts a command in its own process group: the terminal sends it no signals. (Its own
// session would be one more, but Linux schedules sessions separately, and starts get slower.)
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate sends SIGTERM to the process group of a detached process. The guard is in the
// group and ignores the signal, so the group exists until supervision.close.
func terminate(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGTERM) }
