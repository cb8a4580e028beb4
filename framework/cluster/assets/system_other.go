//go:build !unix

package assets

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: without process groups, only the command itself is killed when its
// context ends.
func ownGroup(*exec.Cmd) {}

func stampOf(info os.FileInfo) stamp {
	return stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}
