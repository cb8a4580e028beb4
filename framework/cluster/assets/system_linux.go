package assets

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes a command the head of a process group, so that its children
// can be ended with it. Should this process be killed, the command is too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// stampOf includes the inode's change time, which no program can set: a write
// that puts the modification time back is still noticed.
func stampOf(info os.FileInfo) stamp {
	s := stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Changed, s.Inode = sys.Ctim.Nano(), sys.Ino
	}
	return s
}
