//go:build unix

package userfile

import (
	"fmt"
	"os"
	"syscall"
)

// The bits of a mode that let the group and all other users write.
const (
	groupWrites = 0o020
	otherWrites = 0o002
)

// problem returns what is wrong with the owner or the mode, or "".
func problem(info os.FileInfo) string {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "has no known owner"
	}
	if uid := os.Geteuid(); sys.Uid != 0 && int(sys.Uid) != uid {
		return fmt.Sprintf("belongs to user %d, want user %d or root", sys.Uid, uid)
	}
	mode := info.Mode()
	switch {
	case mode&os.ModeSymlink != 0, mode.IsDir() && mode&os.ModeSticky != 0:
		return "" // the mode of a link means nothing; for the sticky bit see CheckOwner
	case mode&otherWrites != 0:
		return fmt.Sprintf("can be written by every user (mode %s): chmod o-w it", mode)
	case mode&groupWrites != 0 && sys.Gid != 0:
		return fmt.Sprintf("can be written by group %d (mode %s): chmod g-w it", sys.Gid, mode)
	}
	return ""
}
