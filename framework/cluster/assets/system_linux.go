package assets

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts a command in its own process group, so that its children are killed with
// it. If this process is killed, the kernel kills the command.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// stampOf includes the change time of the inode, which programs cannot set. So it detects a
// change after which the modification time was set back.
func stampOf(info os.FileInfo) stamp {
	s := stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Changed, s.Inode = sys.Ctim.Nano(), sys.Ino
	}
	return s
}
