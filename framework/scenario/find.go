package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// file is a file to read scenarios from.
type file struct {
	name, area string
	// stat asks for a file's size and kind before it is opened: opening a pipe
	// would wait for its writer.
	stat func() (fs.FileInfo, error)
	open func() (fs.File, error)
	// beside returns the file at a path relative to this one's folder. It is nil
	// where nothing lies beside it.
	beside func(path string) (*file, error)
}

// finder collects files, each once, in the order of the paths given and, within a
// folder, of their names.
type finder struct {
	files  []file
	errors []*Error
	seen   map[string]bool
}

func (f *finder) fail(name, message, hint string) {
	f.errors = append(f.errors, &Error{File: name, Message: message, Hint: hint})
}

// failOpen reports a path that cannot be opened or listed.
func (f *finder) failOpen(name string, err error) { f.errors = append(f.errors, openError(name, err)) }

func openError(name string, err error) *Error {
	hint := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "check the path"
	case errors.Is(err, fs.ErrPermission):
		hint = "check who may read it"
	}
	var placed *fs.PathError
	if errors.As(err, &placed) {
		err = placed.Err
	}
	return &Error{File: name, Message: fmt.Sprintf("cannot be read: %v; expected a scenario file or a folder of them", err), Hint: hint}
}

// isScenarioFile reports whether a file of a folder is read, by its name.
func isScenarioFile(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

// catalogue collects a file or folder of fsys.
func (f *finder) catalogue(fsys fs.FS, root string) {
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			f.failOpen(name, err)
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			if name != root && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case name != root && !isScenarioFile(entry.Name()), f.seen[name]:
			return nil
		}
		f.seen[name] = true
		area, _, nested := strings.Cut(name, "/")
		if !nested {
			area = ""
		}
		one := within(fsys, name)
		one.area = area
		f.files = append(f.files, *one)
		return nil
	})
	if err != nil {
		f.failOpen(root, err)
	}
}

// path collects a user's file or folder.
func (f *finder) path(name string) {
	info, err := os.Stat(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	if !info.IsDir() {
		f.user(name)
		return
	}
	f.folder(name, nil)
}

// folder collects a user's folder. Above are the real paths of those it lies in,
// by the path that was walked.
func (f *finder) folder(name string, above []string) {
	real, err := realPath(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	for _, outer := range above {
		if outer == real {
			f.fail(name, "a symbolic link to a folder that it lies in; expected folders without a loop", "remove the link")
			return
		}
	}
	if f.seen[real] {
		return
	}
	f.seen[real] = true
	entries, err := os.ReadDir(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	above = append(above[:len(above):len(above)], real)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		inner := filepath.Join(name, entry.Name())
		folder := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Stat(inner)
			if err != nil {
				if isScenarioFile(entry.Name()) {
					f.failOpen(inner, err)
				}
				continue
			}
			folder = target.IsDir()
		}
		switch {
		case folder:
			f.folder(inner, above)
		case isScenarioFile(entry.Name()):
			f.user(inner)
		}
	}
}

// user collects one file of a user.
func (f *finder) user(name string) {
	real, err := realPath(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	if f.seen[real] {
		return
	}
	f.seen[real] = true
	absolute, err := filepath.Abs(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	area := filepath.Base(filepath.Dir(absolute))
	one := onDisk(name)
	one.area = area
	f.files = append(f.files, *one)
}

// within is a file of fsys.
func within(fsys fs.FS, name string) *file {
	return &file{
		name: name,
		stat: func() (fs.FileInfo, error) { return fs.Stat(fsys, name) },
		open: func() (fs.File, error) { return fsys.Open(name) },
		beside: func(other string) (*file, error) {
			full := path.Join(path.Dir(name), other)
			if !fs.ValidPath(full) {
				return nil, errOutside
			}
			return within(fsys, full), nil
		},
	}
}

// errOutside marks a path that leads out of the file system that a scenario was
// loaded from.
var errOutside = errors.New("the path leads out of the file system that the scenario was loaded from")

// onDisk is a file of the machine's.
func onDisk(name string) *file {
	return &file{
		name: name,
		stat: func() (fs.FileInfo, error) { return os.Stat(name) },
		open: func() (fs.File, error) { return os.Open(name) },
		beside: func(other string) (*file, error) {
			return onDisk(filepath.Join(filepath.Dir(name), filepath.FromSlash(other))), nil
		},
	}
}

// realPath returns the absolute path of what a path leads to.
func realPath(name string) (string, error) {
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

// read returns the content of a file, unless it is too large to be one of
// scenarios, or no regular file at all.
func (f *file) read() ([]byte, *Error) {
	content, err := f.content()
	var large sizeError
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, errNotRegular):
		return nil, &Error{File: f.name, Message: "no regular file; expected a file of scenarios", Hint: "give a file or a folder"}
	case errors.As(err, &large):
		return nil, &Error{
			f.name, 1, 1,
			fmt.Sprintf("%v; expected a scenario file of at most %d", err, maxBytes),
			"split it, or give the file that was meant",
		}
	default:
		return nil, openError(f.name, err)
	}
}

// errNotRegular marks a folder, a pipe and the like.
var errNotRegular = errors.New("no regular file")

// sizeError is the size of a file that has more than maxBytes.
type sizeError int64

// Error says how large.
func (t sizeError) Error() string { return fmt.Sprintf("a file of %d bytes", int64(t)) }

// content returns the content of a file. The error is errNotRegular, a sizeError,
// or that of reading it.
func (f *file) content() ([]byte, error) {
	info, err := f.stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if info.Size() > maxBytes {
		return nil, sizeError(info.Size())
	}
	opened, err := f.open()
	if err != nil {
		return nil, err
	}
	defer opened.Close()                                           //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(opened, maxBytes+1)) // it may have grown
	if err != nil {
		return nil, err
	}
	if len(content) > maxBytes {
		return nil, sizeError(len(content))
	}
	return content, nil
}
