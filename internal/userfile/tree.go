package userfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOutside is the error of a file that is not in a tree.
var ErrOutside = errors.New("the file is outside of the tree of the file that leads to it")

// TreeOf returns the folder with the files that the files of a folder may refer to: the Git
// repository that contains it, else the Go module, else the folder above it, but not /. The search ends
// below the folder for temporary files, where any user can put a mark; the go command ignores
// a go.mod there too (https://go.dev/src/cmd/go/internal/modload/init.go).
func TreeOf(folder string) string {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return folder
	}
	temporary := filepath.Clean(os.TempDir())
	for _, mark := range []string{".git", "go.mod"} {
		for at := absolute; at != temporary; at = filepath.Dir(at) {
			if _, err := os.Stat(filepath.Join(at, mark)); err == nil {
				return at
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	if above := filepath.Dir(absolute); above != filepath.Dir(above) {
		return above
	}
	return absolute
}

// InTree returns an ErrOutside if a file, with all symbolic links followed, is not in a tree. One that does not exist
// is an error only for its reader.
func InTree(tree, name string) error {
	tree, err := RealPath(tree)
	if err != nil {
		return err
	}
	real, err := RealPath(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !Within(tree, real) {
		err = fmt.Errorf("%s: %w, %s", name, ErrOutside, tree)
	}
	return err
}

// Within reports whether a path is that of a folder, or is in it. Both are absolute and have no links.
func Within(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(relative)
}

// RealPath returns an absolute path without symbolic links.
func RealPath(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("follow %s: %w", name, err)
	}
	return real, nil
}
