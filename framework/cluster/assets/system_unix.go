//go:build unix && !linux

package assets

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes a command the head of a process group, so that its children
// can be ended with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func stampOf(info os.FileInfo) stamp {
	return stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}
