package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// MaxBytes is the size of the largest file of scenarios that is read, and MaxManifestBytes that of the
// largest file of manifests: a CustomResourceDefinition can have more than 1 MB.
const (
	MaxBytes         = 1 << 20
	MaxManifestBytes = 8 << 20
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
	// input is read instead of a file, or nil.
	input io.Reader
	// opened is that of NewFinder, or nil.
	opened func(path string)
}

// ErrOutside is the error of a path that leads out of the tree of the scenario.
var ErrOutside = errors.New("the path is outside of the tree of the scenario")

// isOutside reports whether an error is that of an os.Root for a path or a link that leads out of it.
func isOutside(err error) bool { return err != nil && strings.Contains(reason(err).Error(), "escapes") }

// Read returns the content of a scenario file, of at most MaxBytes. With the Problem of a larger one, it is the beginning.
func (f *File) Read() ([]byte, []Problem) {
	content, err := f.content(MaxBytes)
	switch {
	case err == nil:
		return content, nil
	case content != nil:
		return content, []Problem{{At(f.Name, 1, 1), err.Error() + "; expected a smaller scenario file", "split it, or check the path"}}
	default:
		return nil, []Problem{cannotRead(f.Name, err)}
	}
}

// cannotRead returns the Problem of a path that cannot be opened, listed or read.
func cannotRead(name string, err error) Problem {
	hint := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "check the path"
	case errors.Is(err, fs.ErrPermission):
		hint = "check the permissions"
	}
	return Problem{At(name, 0, 0), fmt.Sprintf("cannot be read: %v; expected a scenario file or a folder of them", reason(err)), hint}
}

// reason returns the cause of an error without a path.
func reason(err error) error {
	var placed *fs.PathError
	if errors.As(err, &placed) {
		return placed.Err
	}
	return err
}

// content returns the content of a file. With the error of a larger one, it is the beginning, and nil with another error.
func (f *File) content(limit int64) ([]byte, error) {
	from, size := f.input, limit+1
	if from == nil {
		if f.opened != nil {
			f.opened(f.Name)
		}
		info, err := fs.Stat(f.fsys, f.path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, errors.New("not a regular file")
		}
		opened, err := f.fsys.Open(f.path)
		if err != nil {
			return nil, err
		}
		defer opened.Close() //nolint:errcheck // the file is only read
		from, size = opened, info.Size()
	}
	content, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		err = fmt.Errorf("a file of %d bytes", max(size, limit+1))
	}
	return content, err
}

// ReadManifests returns the name and the content of a file of manifests, of at most MaxManifestBytes.
// The given name is a path relative to the folder of this file, which refers to it. The error is ErrOutside if the
// path leads out of the tree.
func (f *File) ReadManifests(name string) (found string, content []byte, err error) {
	full := path.Join(path.Dir(f.path), name)
	if !fs.ValidPath(full) {
		return "", nil, ErrOutside
	}
	found = filepath.Join(filepath.Dir(f.Name), filepath.FromSlash(name))
	content, err = (&File{Name: found, fsys: f.fsys, path: full, opened: f.opened}).content(MaxManifestBytes)
	if isOutside(err) {
		return found, nil, ErrOutside
	}
	return found, content, reason(err)
}
