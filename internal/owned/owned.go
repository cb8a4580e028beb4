// Package owned checks that only this user or root could have written a file, before it is
// executed.
//
//	if err := owned.Check(path); err != nil {
//		return fmt.Errorf("use %s: %w; …", path, err)
//	}
//
// # Promise
//
// Check looks at the file, at each directory above it, and at symbolic links on the way and
// their targets. Each must belong to this user or to root, and neither its group nor other
// users may write to it. Two exceptions: the group may be root's (0), and a directory that
// every user can write to may have the sticky bit, as /tmp has, because its entries can only
// be replaced by their owners.
//
// # Not promised
//
// Access control lists are not read. On systems without POSIX owners, nothing is checked.
package owned

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrUnsafe means that another user could have written the file.
var ErrUnsafe = errors.New("another user could have written the file")

// Check returns nil if only this user or root could have written the file or directory. The
// error is an ErrUnsafe that names the file or directory and what is wrong with it, or one of
// the file system.
func Check(path string) error {
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
