package userfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// TempDir returns the absolute path of os.TempDir. The error is an ErrUnsafe if another user could replace
// what this user makes in it; it says what to do.
func TempDir() (string, error) {
	dir, err := filepath.Abs(os.TempDir())
	if err == nil {
		err = CheckOwner(dir)
	}
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w; set TMPDIR to a directory that only you can write to", err)
	}
	return dir, nil
}

// MkdirTemp makes a folder in TempDir that only this user can read and write. The pattern is that of
// os.MkdirTemp.
func MkdirTemp(pattern string) (string, error) {
	parent, err := TempDir()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, pattern)
}
