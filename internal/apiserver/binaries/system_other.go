//go:build !unix

package binaries

import (
	"os/exec"
)

// ownGroup does nothing: without process groups, only the command itself is killed when its
// context ends.
func ownGroup(*exec.Cmd) {}
