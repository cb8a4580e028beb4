package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file to read scenarios or manifests from.
type file struct {
	name, area string
	// stat returns the size and type of the file before it is opened, because opening
	// a named pipe would wait for its writer.
	stat func() (fs.FileInfo, error)
	open func() (fs.File, error)
	// inFolder is true if the file was found in a folder.
	inFolder bool
	// limit is the size of the largest content. 0 means maxBytes.
	limit int64
	// data is the content of a file that is not opened, or nil.
	data *[]byte
	// opened is LoadOptions.Opened, or nil.
	opened func(path string)
	// relative returns the file at a path relative to this file's folder.
	relative func(path string) (*file, error)
}

// finder collects files, each once, in the order of the given paths and, in a
// folder, in the order of their names.
type finder struct {
	files   []file
	errors  []*Error
	seen    map[string]bool
	options LoadOptions
	// tree is the folder that files of the operating system may refer to files in.
	tree string
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
		hint = "check the permissions"
	}
	var placed *fs.PathError
	if errors.As(err, &placed) {
		err = placed.Err
	}
	return &Error{File: name, Message: fmt.Sprintf("cannot be read: %v; expected a scenario file or a folder of them", err), Hint: hint}
}

// isScenarioFile reports whether a file in a folder is read, by its name.
func isScenarioFile(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// inFS collects a file or the files of a folder of an fs.FS.
func (f *finder) inFS(fsys fs.FS, root string) {
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
		one := fileInFS(fsys, name)
		one.area = area
		f.files = append(f.files, *one)
		return nil
	})
	if err != nil {
		f.failOpen(root, err)
	}
}

// onDisk collects a file or the files of a folder of the operating system.
func (f *finder) onDisk(name string) {
	info, err := os.Stat(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	if !info.IsDir() {
		f.tree = treeOf(filepath.Dir(name))
		f.addFile(name, false)
		return
	}
	f.tree = treeOf(name)
	f.addFolder(name, nil)
}

// addFolder collects the files of a folder. Above are the real paths of the
// folders that contain it, on the way that was walked.
func (f *finder) addFolder(name string, above []string) {
	real, err := realPath(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	if slices.Contains(above, real) {
		f.fail(name, "a symbolic link to a folder that contains it; expected folders without a loop", "remove the link")
		return
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
	above = append(slices.Clip(above), real)
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
			f.addFolder(inner, above)
		case isScenarioFile(entry.Name()):
			f.addFile(inner, true)
		}
	}
}

// addFile collects one file of the operating system.
func (f *finder) addFile(name string, inFolder bool) {
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
	one := fileOnDisk(name, f.tree)
	one.area, one.inFolder, one.opened = filepath.Base(filepath.Dir(absolute)), inFolder, f.options.Opened
	f.files = append(f.files, *one)
}

// fileInFS returns a file of an fs.FS.
func fileInFS(fsys fs.FS, name string) *file {
	return &file{
		name: name,
		stat: func() (fs.FileInfo, error) { return fs.Stat(fsys, name) },
		open: func() (fs.File, error) { return fsys.Open(name) },
		relative: func(other string) (*file, error) {
			full := path.Join(path.Dir(name), other)
			if !fs.ValidPath(full) || leadsOut(fsys, full) {
				return nil, errOutsideFS
			}
			return fileInFS(fsys, full), nil
		},
	}
}

// realPath returns an absolute path without symbolic links.
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

// inputName is the path of the input.
const inputName = "-"

// input collects the input, as a file in the working directory.
func (f *finder) input(from io.Reader) {
	if f.seen[inputName] {
		return
	}
	f.seen[inputName] = true
	if from == nil {
		from = strings.NewReader("")
	}
	content, err := io.ReadAll(io.LimitReader(from, maxBytes+1))
	if err != nil {
		f.failOpen(inputName, err)
		return
	}
	one := fileOnDisk(inputName, treeOf("."))
	one.area, one.data = inputName, &content
	f.files = append(f.files, *one)
}

// read returns the content of a scenario file.
func (f *file) read() ([]byte, *Error) {
	content, err := f.content()
	var large sizeError
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, errNotRegular):
		return nil, &Error{File: f.name, Message: "not a regular file; expected a file of scenarios", Hint: "give a file or a folder"}
	case errors.As(err, &large):
		return nil, &Error{
			f.name, 1, 1,
			fmt.Sprintf("%v; expected a scenario file of at most %d bytes", err, maxBytes),
			"split it, or check the path",
		}
	default:
		return nil, openError(f.name, err)
	}
}

// maxBytes is the size of the largest file of scenarios that is read, and maxManifestBytes that of the
// largest file of manifests: a CustomResourceDefinition can have more than 1 MB.
const (
	maxBytes         = 1 << 20
	maxManifestBytes = 8 << 20
)

// errNotRegular is the error for a folder, a named pipe and the like.
var errNotRegular = errors.New("not a regular file")

// sizeError is the size of a file with more than maxBytes.
type sizeError int64

// Error returns the size.
func (t sizeError) Error() string { return fmt.Sprintf("a file of %d bytes", int64(t)) }

// content returns the content of a file. The error is errNotRegular, a sizeError,
// or that of reading the file.
func (f *file) content() ([]byte, error) {
	if f.data != nil {
		if len(*f.data) > maxBytes {
			return nil, sizeError(len(*f.data))
		}
		return *f.data, nil
	}
	if f.opened != nil {
		f.opened(f.name)
	}
	info, err := f.stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	limit := cmp.Or(f.limit, maxBytes)
	if info.Size() > limit {
		return nil, sizeError(info.Size())
	}
	opened, err := f.open()
	if err != nil {
		return nil, err
	}
	defer opened.Close()                                        //nolint:errcheck // the file is only read
	content, err := io.ReadAll(io.LimitReader(opened, limit+1)) // it may have grown since stat
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, sizeError(len(content))
	}
	return content, nil
}
