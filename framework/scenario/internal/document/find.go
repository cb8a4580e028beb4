package document

import (
	"errors"
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

// fail reports a path that cannot be opened or listed.
func (f *Finder) fail(name string, err error) {
	f.Problems = append(f.Problems, cannotRead(name, err))
}

// add collects a file, if no other one has its identity.
func (f *Finder) add(identity string, file *File) {
	if !f.seen[identity] {
		f.seen[identity] = true
		f.Files = append(f.Files, file)
	}
}

// isScenarioFile reports whether a file in a folder is read, by its name.
func isScenarioFile(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// InFS collects a file or the files of a folder of an fs.FS.
func (f *Finder) InFS(fsys fs.FS, root string) {
	f.walk(fsys, root, func(name string) string { return name }, func(name string) {
		area, _, nested := strings.Cut(name, "/")
		if !nested {
			area = ""
		}
		f.add(name, &File{Name: name, Area: area, fsys: fsys, path: name})
	})
}

// walk calls a function for a file, or for the files of a folder that are read. It reports what cannot be read with
// the path that shown returns. A link to a folder is not followed.
func (f *Finder) walk(fsys fs.FS, root string, shown func(string) string, do func(name string)) {
	_ = fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error { // the function returns no error
		switch hidden := name != root && strings.HasPrefix(path.Base(name), "."); {
		case err != nil:
			f.fail(shown(name), err)
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir() || hidden:
		case entry.Type()&fs.ModeSymlink != 0:
			f.link(fsys, name, shown(name), do)
		case name == root || isScenarioFile(name):
			do(name)
		}
		return nil
	})
}

// link calls a function for a link to a file that is read.
func (f *Finder) link(fsys fs.FS, name, shown string, do func(name string)) {
	info, err := fs.Stat(fsys, name)
	switch isFile := isScenarioFile(path.Base(name)); {
	case isOutside(err):
		f.fail(shown, errors.New("a symbolic link out of the tree of the folder"))
	case err == nil && info.IsDir():
		f.fail(shown, errors.New("a symbolic link to a folder"))
	case err != nil && isFile:
		f.fail(shown, err)
	case isFile:
		do(name)
	}
}

// OnDisk collects a file or the files of a folder of the operating system.
func (f *Finder) OnDisk(name string) {
	info, err := os.Stat(name)
	if err != nil {
		f.fail(name, err)
		return
	}
	real, err := userfile.RealPath(name) // the given path can have links
	if err != nil {
		f.fail(name, err)
		return
	}
	folder := real
	if !info.IsDir() {
		folder = filepath.Dir(real)
	}
	fsys, start, err := tree(folder, real)
	if err != nil {
		f.fail(name, err)
		return
	}
	shown := func(within string) string {
		if start != "." {
			within = strings.TrimPrefix(strings.TrimPrefix(within, start), "/")
		}
		return filepath.Join(name, filepath.FromSlash(within))
	}
	f.walk(fsys, start, shown, func(within string) {
		file := shown(within)
		real, err := userfile.RealPath(file)
		absolute, errAbsolute := filepath.Abs(file)
		if err := errors.Join(err, errAbsolute); err != nil {
			f.fail(file, err)
			return
		}
		f.add(real, &File{Name: file, Area: filepath.Base(filepath.Dir(absolute)), InFolder: info.IsDir(), fsys: fsys, path: within, opened: f.opened})
	})
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

// InputName is the path of the input, and the name and area of its file.
const InputName = "-"

// Input collects the input, as a file in the working directory. Nil is an empty input.
func (f *Finder) Input(from io.Reader) {
	if from == nil {
		from = strings.NewReader("")
	}
	folder, err := userfile.RealPath(".")
	if err != nil {
		f.fail(InputName, err)
		return
	}
	fsys, within, err := tree(folder, filepath.Join(folder, InputName))
	if err != nil {
		f.fail(InputName, err)
		return
	}
	f.add(InputName, &File{Name: InputName, Area: InputName, fsys: fsys, path: within, input: from})
}
