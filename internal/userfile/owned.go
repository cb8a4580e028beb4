package userfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrUnsafe means that another user could have written the file.
var ErrUnsafe = errors.New("another user could have written the file")

// CheckOwner returns nil if only this user or root could have written a file or directory. It looks at each directory
// above it, and at symbolic links on the way and their targets: each must belong to this user or to root, and neither its
// group nor other users may write to it. The group may be root's (0), and a directory that every user can write to may
// have the sticky bit, as /tmp has, because its entries can only be replaced by their owners. Access control lists are
// not read, and on systems without POSIX owners nothing is checked. The error is an ErrUnsafe that names the file or
// directory and what is wrong with it, or one of the file system.
func CheckOwner(path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("check the owner of %s: %w", path, err)
	}
	target, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return fmt.Errorf("check the owner of %s: %w", path, err)
	}
	if err := chain(absolute); err != nil {
		return err
	}
	if target == absolute {
		return nil
	}
	return chain(target)
}

// chain checks a path and the directories above it.
func chain(path string) error {
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("check the owner of %s: %w", path, err)
		}
		if wrong := problem(info); wrong != "" {
			return fmt.Errorf("%w: %s %s", ErrUnsafe, path, wrong)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return nil
		}
		path = parent
	}
}
