package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// Finder collects files, each once, in the order of the given paths and, in a
// folder, in the order of their names.
type Finder struct {
	// Files are the files that were found.
	Files []*File
	// Problems are what is wrong with paths, in the same order.
	Problems []Problem

	seen map[string]bool
	// opened is called with the path of each file of the operating system before it is read. It can
	// be nil.
	opened func(path string)
}

// NewFinder returns a Finder that has found nothing. Opened is called with the path of each file of the
// operating system before it is read, also if that fails; it can be nil.
func NewFinder(opened func(path string)) *Finder {
	return &Finder{seen: map[string]bool{}, opened: opened}
}

func (f *Finder) fail(name, message, hint string) {
	f.Problems = append(f.Problems, Problem{At: At(name, 0, 0), Message: message, Hint: hint})
}

// failOpen reports a path that cannot be opened or listed.
func (f *Finder) failOpen(name string, err error) {
	message, hint := cannotOpen(err)
	f.fail(name, message, hint)
}

// cannotOpen returns the message and the hint of a Problem.
func cannotOpen(err error) (message, hint string) {
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
	return fmt.Sprintf("cannot be read: %v; expected a scenario file or a folder of them", err), hint
}

// isScenarioFile reports whether a file in a folder is read, by its name.
func isScenarioFile(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// InFS collects a file or the files of a folder of an fs.FS.
func (f *Finder) InFS(fsys fs.FS, root string) {
	f.walk(fsys, root, func(name string) string { return name }, func(name string) {
		if f.seen[name] {
			return
		}
		f.seen[name] = true
		area, _, nested := strings.Cut(name, "/")
		if !nested {
			area = ""
		}
		f.Files = append(f.Files, &File{Name: name, Area: area, fsys: fsys, path: name})
	})
}

// walk calls a function for a file, or for the files of a folder that are read. It reports what cannot be read with
// the path that shown returns. A link to a folder is not followed.
func (f *Finder) walk(fsys fs.FS, root string, shown func(string) string, do func(name string)) {
	_ = fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error { // the function returns no error
		switch {
		case err != nil:
			f.failOpen(shown(name), err)
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
		case name != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
		case entry.Type()&fs.ModeSymlink != 0:
			f.link(fsys, name, shown(name), do)
		case name == root || isScenarioFile(entry.Name()):
			do(name)
		}
		return nil
	})
}

// link calls a function for a link to a file that is read.
func (f *Finder) link(fsys fs.FS, name, shown string, do func(name string)) {
	info, err := fs.Stat(fsys, name)
	switch {
	case isOutside(err):
		f.fail(shown, "a symbolic link out of the tree of the folder; expected files and folders in it", "remove the link; scenarios of another place are given by their path")
	case err != nil && isScenarioFile(path.Base(name)):
		f.failOpen(shown, err)
	case err != nil:
	case info.IsDir():
		f.fail(shown, "a symbolic link to a folder; expected files, folders and links to files", "give the folder by its path")
	case isScenarioFile(path.Base(name)):
		do(name)
	}
}

// OnDisk collects a file or the files of a folder of the operating system.
func (f *Finder) OnDisk(name string) {
	info, err := os.Stat(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	real, err := userfile.RealPath(name) // the given path can have links
	if err != nil {
		f.failOpen(name, err)
		return
	}
	folder := real
	if !info.IsDir() {
		folder = filepath.Dir(real)
	}
	fsys, start, err := tree(folder, real)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	shown := func(within string) string {
		below := strings.TrimPrefix(strings.TrimPrefix(within, start), "/")
		if start == "." {
			below = within
		}
		return filepath.Join(name, filepath.FromSlash(below))
	}
	f.walk(fsys, start, shown, func(within string) { f.addFile(shown(within), within, fsys, info.IsDir()) })
}

// tree returns the files that a file or folder of the operating system may refer to, and where it is there: no path and
// no symbolic link leads out of them.
func tree(folder, of string) (fsys fs.FS, within string, err error) {
	top := userfile.TreeOf(folder)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", err
	}
	within, err = filepath.Rel(top, of)
	return root.FS(), filepath.ToSlash(within), err
}

// addFile collects one file of the operating system.
func (f *Finder) addFile(name, within string, fsys fs.FS, inFolder bool) {
	real, err := userfile.RealPath(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	absolute, err := filepath.Abs(name)
	if err != nil || f.seen[real] {
		return
	}
	f.seen[real] = true
	f.Files = append(f.Files, &File{Name: name, Area: filepath.Base(filepath.Dir(absolute)), InFolder: inFolder, fsys: fsys, path: within, onDisk: true, opened: f.opened})
}

// InputName is the path of the input, and the name and area of its file.
const InputName = "-"

// Input collects the input, as a file in the working directory. Nil is an empty input.
func (f *Finder) Input(from io.Reader) {
	if f.seen[InputName] {
		return
	}
	f.seen[InputName] = true
	if from == nil {
		from = strings.NewReader("")
	}
	content, err := io.ReadAll(io.LimitReader(from, MaxBytes+1))
	var folder, within string
	var fsys fs.FS
	if err == nil {
		folder, err = userfile.RealPath(".")
	}
	if err == nil {
		fsys, within, err = tree(folder, filepath.Join(folder, InputName))
	}
	if err != nil {
		f.failOpen(InputName, err)
		return
	}
	f.Files = append(f.Files, &File{Name: InputName, Area: InputName, fsys: fsys, path: within, onDisk: true, data: &content})
}
