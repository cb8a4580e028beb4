package document

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// ErrOutside is the error of a path that leads out of the tree of the scenario.
var ErrOutside = errors.New("the path is outside of the tree of the scenario")

// errOutsideFS is ErrOutside for an fs.FS, all of which is the tree.
var errOutsideFS = errors.New("the path is outside of the file system of the scenario")

// tree has the files that a file may refer to.
type tree struct {
	// folder is the path of the tree on the disk.
	folder string
	// open returns them. No path and no symbolic link leads out of an os.Root.
	open func() (fs.FS, error)
	// outside is the error of a path that leads out of the tree.
	outside error
}

// treeInFS is all of an fs.FS.
func treeInFS(fsys fs.FS) tree {
	return tree{open: func() (fs.FS, error) { return fsys, nil }, outside: errOutsideFS}
}

// treeOnDisk is a folder of the operating system, which is only opened if a file refers to another one.
func treeOnDisk(folder string) tree {
	return tree{folder: folder, outside: ErrOutside, open: sync.OnceValues(func() (fs.FS, error) {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		return root.FS(), nil
	})}
}

// find returns the files of the tree, if a path does not lead out of it.
func (t tree) find(name string) (fs.FS, error) {
	if !fs.ValidPath(name) {
		return nil, t.outside
	}
	fsys, err := t.open()
	if err == nil && leadsOut(fsys, name) {
		err = t.outside
	}
	return fsys, err
}

// osFS opens the files of the operating system that a user gave, or that a walk found.
type osFS struct{}

// Open opens a file with any path.
func (osFS) Open(name string) (fs.File, error) { return os.Open(name) } //nolint:gosec // the user gave it

// Stat does not open the file, because opening a named pipe would wait for its writer.
func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// fileOnDisk returns a file of the operating system that may refer to files in a tree.
func fileOnDisk(name string, in tree) (*File, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(absolute)
	return &File{
		Name: name, Area: filepath.Base(folder), fsys: osFS{}, path: name, tree: in,
		within: func(other string) string { // a path can lead out of the tree and back
			within, err := filepath.Rel(in.folder, filepath.Join(folder, filepath.FromSlash(other)))
			if err != nil {
				return ".." // on another volume
			}
			return filepath.ToSlash(within)
		},
		beside: func(other string) string { return filepath.Join(filepath.Dir(name), filepath.FromSlash(other)) },
	}, nil
}

// fileInFS returns a file of an fs.FS.
func fileInFS(fsys fs.FS, name string) *File {
	beside := func(other string) string { return path.Join(path.Dir(name), other) }
	return &File{Name: name, fsys: fsys, path: name, tree: treeInFS(fsys), within: beside, beside: beside}
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
