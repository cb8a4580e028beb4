package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// ErrOutside is the error of a path that leads out of the tree of the scenario.
var ErrOutside = errors.New("the path is outside of the tree of the scenario")

// errOutsideFS is ErrOutside for an fs.FS, all of which is the tree.
var errOutsideFS = errors.New("the path is outside of the file system of the scenario")

// fileOnDisk returns a file of the operating system that may refer to files in a tree.
func fileOnDisk(name, tree string) *File {
	return &File{
		Name: name,
		stat: func() (fs.FileInfo, error) { return os.Stat(name) },
		open: func() (fs.File, error) { return os.Open(name) },
		relative: func(other string) (*File, error) {
			return fileInTree(filepath.Join(filepath.Dir(name), filepath.FromSlash(other)), tree)
		},
		glob: func(folder, pattern string) ([]string, error) {
			return globInTree(filepath.Join(filepath.Dir(name), filepath.FromSlash(folder)), tree, pattern)
		},
	}
}

// globInTree returns the files in a folder that a pattern matches. It does not list what is outside of the tree.
func globInTree(folder, tree, pattern string) ([]string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", folder, err)
	}
	below, err := filepath.Rel(tree, absolute)
	if err != nil || !filepath.IsLocal(below) {
		return nil, ErrOutside
	}
	if errors.Is(userfile.InTree(tree, folder), userfile.ErrOutside) {
		return nil, ErrOutside
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing is written
	within, err := fs.Sub(root.FS(), filepath.ToSlash(below))
	if err != nil {
		return nil, err
	}
	return fs.Glob(within, pattern)
}

// fileInTree returns a file in a tree. No symbolic link on the way to it leads out of the
// tree, at the time it is opened.
func fileInTree(name, tree string) (*File, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	within, err := filepath.Rel(tree, absolute)
	if err != nil || !filepath.IsLocal(within) {
		return nil, ErrOutside
	}
	open := func() (fs.File, error) {
		root, err := os.OpenRoot(tree)
		if err != nil {
			return nil, err
		}
		defer root.Close() //nolint:errcheck // nothing is written
		opened, err := root.Open(within)
		if err != nil {
			return nil, err // not a nil *os.File
		}
		return opened, nil
	}
	return &File{
		Name: name,
		stat: func() (fs.FileInfo, error) {
			root, err := os.OpenRoot(tree)
			if err != nil {
				return nil, err
			}
			defer root.Close() //nolint:errcheck // nothing is written
			info, err := root.Stat(within)
			if _, plain := os.Stat(name); err != nil && plain == nil {
				return nil, ErrOutside // it exists, but not in the tree
			}
			return info, err
		},
		open: open,
	}, nil
}

// fileInFS returns a file of an fs.FS.
func fileInFS(fsys fs.FS, name string) *File {
	return &File{
		Name: name,
		stat: func() (fs.FileInfo, error) { return fs.Stat(fsys, name) },
		open: func() (fs.File, error) { return fsys.Open(name) },
		relative: func(other string) (*File, error) {
			full := path.Join(path.Dir(name), other)
			if !fs.ValidPath(full) || leadsOut(fsys, full) {
				return nil, errOutsideFS
			}
			return fileInFS(fsys, full), nil
		},
		glob: func(folder, pattern string) ([]string, error) {
			within, err := fs.Sub(fsys, path.Join(path.Dir(name), folder))
			if err != nil {
				return nil, err
			}
			return fs.Glob(within, pattern)
		},
	}
}

// maxLinks is the largest number of symbolic links on the way to a file.
const maxLinks = 40

// leadsOut reports whether a symbolic link on the way to a file leads out of an fs.FS, as
// far as the fs.FS shows its links. That of os.DirFS does.
func leadsOut(fsys fs.FS, name string) bool {
	for range maxLinks {
		link, rest := firstLink(fsys, name)
		if link == "" {
			return false
		}
		target, err := fs.ReadLink(fsys, link)
		name = path.Join(path.Dir(link), target, rest)
		if err != nil || path.IsAbs(target) || !fs.ValidPath(name) {
			return true
		}
	}
	return true
}

// firstLink returns the first part of a path that is a symbolic link, and what follows it,
// or "".
func firstLink(fsys fs.FS, name string) (link, rest string) {
	parts := strings.Split(name, "/")
	for i := range parts {
		part := path.Join(parts[:i+1]...)
		info, err := fs.Lstat(fsys, part)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return part, path.Join(parts[i+1:]...)
		}
	}
	return "", ""
}
