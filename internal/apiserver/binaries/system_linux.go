package binaries

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in its own process group, so that its children are killed with
// it. If this process is killed, the kernel kills the command.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
