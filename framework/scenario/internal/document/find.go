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
	// tree is the folder that files of the operating system may refer to files in.
	tree tree
	// linkTree is the folder, without links, that links in a given folder may lead to.
	linkTree string
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
		if entry.Type()&fs.ModeSymlink != 0 && leadsOut(fsys, name) {
			f.failLink(name, "the file system")
			return nil
		}
		area, _, nested := strings.Cut(name, "/")
		if !nested {
			area = ""
		}
		one := fileInFS(fsys, name)
		one.Area = area
		f.Files = append(f.Files, one)
		return nil
	})
	if err != nil {
		f.failOpen(root, err)
	}
}

// OnDisk collects a file or the files of a folder of the operating system.
func (f *Finder) OnDisk(name string) {
	info, err := os.Stat(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	if !info.IsDir() {
		f.tree = treeOnDisk(userfile.TreeOf(filepath.Dir(name)))
		f.addFile(name, false)
		return
	}
	real, err := userfile.RealPath(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	f.tree, f.linkTree = treeOnDisk(userfile.TreeOf(name)), userfile.TreeOf(real) // the given path can have links
	f.addFolder(name, real, nil)
}

// failLink reports a link that leads out of a tree.
func (f *Finder) failLink(name, tree string) {
	f.fail(name, "a symbolic link out of "+tree+"; expected files and folders in it", "remove the link; scenarios of another place are given by their path")
}

// addFolder collects the files of a folder, whose path without links is real. Above are these paths of the
// folders that contain it, on the way that was walked.
func (f *Finder) addFolder(name, real string, above []string) {
	if slices.ContainsFunc(above, func(one string) bool { return userfile.Within(real, one) }) {
		f.fail(name, "a symbolic link to a folder that contains the link; expected folders without a loop", "remove the link")
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
		inner, target, folder := filepath.Join(name, entry.Name()), filepath.Join(real, entry.Name()), entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(inner)
			if err == nil {
				target, err = userfile.RealPath(inner)
			}
			if err != nil {
				if isScenarioFile(entry.Name()) {
					f.failOpen(inner, err)
				}
				continue
			}
			folder = info.IsDir()
			if (folder || isScenarioFile(entry.Name())) && !userfile.Within(f.linkTree, target) {
				f.failLink(inner, f.linkTree)
				continue
			}
		}
		switch {
		case folder:
			f.addFolder(inner, target, above)
		case isScenarioFile(entry.Name()):
			f.addFile(inner, true)
		}
	}
}

// addFile collects one file of the operating system.
func (f *Finder) addFile(name string, inFolder bool) {
	real, err := userfile.RealPath(name)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	if f.seen[real] {
		return
	}
	f.seen[real] = true
	one, err := fileOnDisk(name, f.tree)
	if err != nil {
		f.failOpen(name, err)
		return
	}
	one.InFolder, one.opened = inFolder, f.opened
	f.Files = append(f.Files, one)
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
	if err != nil {
		f.failOpen(InputName, err)
		return
	}
	one, err := fileOnDisk(InputName, treeOnDisk(userfile.TreeOf(".")))
	if err != nil {
		f.failOpen(InputName, err)
		return
	}
	one.Area, one.data = InputName, &content
	f.Files = append(f.Files, one)
}
