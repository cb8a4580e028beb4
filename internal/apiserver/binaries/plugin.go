package binaries

import (
	"errors"
	"fmt"
	"go/token"
	"path/filepath"
	"strings"
)

// ErrBadPlugin means: a plugin of Options.Plugins cannot be compiled into kube-apiserver. The
// error says why, with the lines of the compiler.
var ErrBadPlugin = errors.New("the plugin cannot be built into kube-apiserver")

// Plugin is a Go package with admission plugins, to be compiled into kube-apiserver. Package framework/envtest says what
// the package looks like. Package is required; the zero values of the other fields mean: at
// the place where Kubernetes puts new plugins, and on.
type Plugin struct {
	// Package is an import path, or a folder: an absolute path, or one that begins with a dot.
	Package string
	// Dir is the folder that relative folders begin at. An import path is one in the module of
	// this folder or in its requirements. Empty means the working directory.
	Dir string
	// Before or After is the name of a plugin that these plugins are called before or after.
	// Last means: after all others. At most one of them may be set.
	Before, After string
	Last          bool
	// Off means that the plugins are off unless --enable-admission-plugins turns them on.
	Off bool
}

// ParsePlugin parses PACKAGE[,before=NAME|,after=NAME|,last][,off].
func ParsePlugin(text string) (Plugin, error) {
	name, rest, _ := strings.Cut(text, ",")
	p := Plugin{Package: name}
	if name == "" {
		return p, fmt.Errorf("plugin %q: want PACKAGE[,before=NAME|,after=NAME|,last][,off], where PACKAGE is an import path or a folder", text)
	}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "before" && value != "":
			p.Before = value
		case key == "after" && value != "":
			p.After = value
		case word == "last":
			p.Last = true
		case word == "off":
			p.Off = true
		default:
			return p, fmt.Errorf("plugin %q: unknown word %q; want before=NAME, after=NAME, last or off", text, word)
		}
	}
	return p, p.check()
}

// String returns what ParsePlugin parses.
func (p Plugin) String() string {
	text := p.Package
	for _, part := range []struct {
		set  bool
		text string
	}{{p.Before != "", "before=" + p.Before}, {p.After != "", "after=" + p.After}, {p.Last, "last"}, {p.Off, "off"}} {
		if part.set {
			text += "," + part.text
		}
	}
	return text
}

// check returns an error for a plugin with two positions, or names that are none.
func (p Plugin) check() error {
	positions := 0
	for _, set := range []bool{p.Before != "", p.After != "", p.Last} {
		if set {
			positions++
		}
	}
	if positions > 1 {
		return fmt.Errorf("plugin %q: want one of before, after and last", p.String())
	}
	if name := p.Before + p.After; name != "" && !token.IsIdentifier(name) {
		return fmt.Errorf("plugin %q: %q is not the name of a plugin", p.String(), name)
	}
	return nil
}

// folder returns the folder to run `go` in, and the package as an argument of it.
func (p Plugin) folder() (dir, pattern string) {
	if filepath.IsAbs(p.Package) || p.Package == "." || strings.HasPrefix(p.Package, "./") || strings.HasPrefix(p.Package, "../") || p.Package == ".." {
		if filepath.IsAbs(p.Package) {
			return p.Package, "."
		}
		return filepath.Join(p.Dir, filepath.FromSlash(p.Package)), "."
	}
	return p.Dir, p.Package
}
