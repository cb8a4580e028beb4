//go:build !unix

package envtest

import (
	"os"
	"os/exec"
)

// detach does nothing. On these systems no server starts, because they have no POSIX shell.
func detach(*exec.Cmd) {}

func terminate(process *os.Process) error { return process.Kill() }
