//go:build !unix

package processes

import (
	"os"
	"os/exec"
)

// Detach does nothing. On these systems no Command starts, because they have no POSIX shell.
func Detach(*exec.Cmd) {}

// Terminate ends the process.
func Terminate(process *os.Process) error { return process.Kill() }

// Kill ends the process.
func Kill(process *os.Process) error { return process.Kill() }
