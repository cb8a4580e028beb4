package document

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// File is a file to read scenarios from, or manifests that they refer to.
type File struct {
	// Name is the path as it was given, or as it was found in a given folder.
	Name string
	// Area is the area of its scenarios.
	Area string
	// InFolder is true if the file was found in a folder of the operating system.
	InFolder bool

	// fsys has the file, at a path, and the files that it may refer to.
	fsys fs.FS
	path string
	// onDisk is true if the files are in a folder of the operating system.
	onDisk bool
	// limit is the size of the largest content. 0 means MaxBytes.
	limit int64
	// data is the content of a file that is not opened, or nil.
	data *[]byte
	// opened is that of NewFinder, or nil.
	opened func(path string)
}

// ErrOutside is the error of a path that leads out of the tree of the scenario.
var ErrOutside = errors.New("the path is outside of the tree of the scenario")

// isOutside reports whether an error is that of an os.Root for a path or a link that leads out of it.
func isOutside(err error) bool {
	var placed *fs.PathError
	return errors.Is(err, ErrOutside) || errors.As(err, &placed) && strings.Contains(placed.Err.Error(), "escapes")
}

// beside returns the path in fsys of a file at a path relative to the folder of this file.
func (f *File) beside(name string) (string, error) {
	within := path.Join(path.Dir(f.path), name)
	if !fs.ValidPath(within) {
		return "", ErrOutside
	}
	return within, nil
}

// Glob returns the paths of the files that a pattern of path.Match matches, sorted, relative to the folder
// of this file.
func (f *File) Glob(pattern string) ([]string, error) {
	folder, rest := ".", pattern
	for {
		first, after, deeper := strings.Cut(rest, "/")
		if !deeper || IsGlob(first) {
			break
		}
		folder, rest = path.Join(folder, first), after
	}
	full, err := f.beside(folder)
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(f.fsys, full); isOutside(err) {
		return nil, ErrOutside
	}
	within, err := fs.Sub(f.fsys, full)
	if err != nil {
		return nil, err
	}
	found, err := fs.Glob(within, rest)
	for i := range found {
		found[i] = path.Join(folder, found[i])
	}
	return found, err
}

// IsGlob reports whether a path is a pattern with wildcards.
func IsGlob(name string) bool { return strings.ContainsAny(name, "*?") }

// Read returns the content of a scenario file, of at most MaxBytes. With the Problem of a larger one, it is the beginning.
func (f *File) Read() ([]byte, []Problem) {
	content, err := f.content()
	var large sizeError
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, errNotRegular):
		return nil, []Problem{{At(f.Name, 0, 0), "not a regular file; expected a file of scenarios", "give a file or a folder"}}
	case errors.As(err, &large):
		return content, []Problem{{At(f.Name, 1, 1), fmt.Sprintf("%v; expected a scenario file of at most %d bytes", err, MaxBytes), "split it, or check the path"}}
	default:
		message, hint := cannotOpen(err)
		return nil, []Problem{{At(f.Name, 0, 0), message, hint}}
	}
}

// MaxBytes is the size of the largest file of scenarios that is read, and MaxManifestBytes that of the
// largest file of manifests: a CustomResourceDefinition can have more than 1 MB.
const (
	MaxBytes         = 1 << 20
	MaxManifestBytes = 8 << 20
)

// errNotRegular is the error for a folder, a named pipe and the like.
var errNotRegular = errors.New("not a regular file")

// sizeError is the size of a file with more than MaxBytes.
type sizeError int64

// Error returns the size.
func (t sizeError) Error() string { return fmt.Sprintf("a file of %d bytes", int64(t)) }

// content returns the content of a file. The error is errNotRegular, a sizeError, with which the content is the
// beginning, or that of reading the file.
func (f *File) content() ([]byte, error) {
	if f.data != nil {
		if len(*f.data) > MaxBytes {
			return nil, sizeError(len(*f.data))
		}
		return *f.data, nil
	}
	if f.opened != nil {
		f.opened(f.Name)
	}
	info, err := fs.Stat(f.fsys, f.path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	limit := cmp.Or(f.limit, MaxBytes)
	opened, err := f.fsys.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()                                        //nolint:errcheck // the file is only read
	content, err := io.ReadAll(io.LimitReader(opened, limit+1)) // it may have grown since stat
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return content, sizeError(max(info.Size(), int64(len(content))))
	}
	return content, nil
}

// ReadManifests returns the name and the content of a file of manifests, of at most MaxManifestBytes.
// The given name is a path relative to the folder of this file, which refers to it. The error matches ErrOutside if the
// path leads out of the tree, and an *fs.PathError if the file cannot be opened or read.
func (f *File) ReadManifests(name string) (found string, content []byte, err error) {
	full, err := f.beside(name)
	if err != nil {
		return "", nil, err
	}
	found = path.Join(path.Dir(f.Name), name)
	if f.onDisk {
		found = filepath.Join(filepath.Dir(f.Name), filepath.FromSlash(name))
	}
	content, err = (&File{Name: found, fsys: f.fsys, path: full, limit: MaxManifestBytes, opened: f.opened}).content()
	if isOutside(err) {
		err = ErrOutside
	}
	return found, content, err
}
