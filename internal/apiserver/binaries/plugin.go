package binaries

import (
	"errors"
	"fmt"
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
	// Last means that these plugins are called after all others.
	Last bool
	// Off means that the plugins are off unless --enable-admission-plugins turns them on.
	Off bool
}

// ParsePlugin parses PACKAGE[,last][,off].
func ParsePlugin(text string) (Plugin, error) {
	name, rest, _ := strings.Cut(text, ",")
	p := Plugin{Package: name}
	if name == "" {
		return p, fmt.Errorf("plugin %q: want PACKAGE[,last][,off], where PACKAGE is an import path or a folder", text)
	}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, ",")
		switch word {
		case "last":
			p.Last = true
		case "off":
			p.Off = true
		default:
			return p, fmt.Errorf("plugin %q: unknown word %q; want last or off", text, word)
		}
	}
	return p, nil
}

// String returns what ParsePlugin parses.
func (p Plugin) String() string {
	text := p.Package
	if p.Last {
		text += ",last"
	}
	if p.Off {
		text += ",off"
	}
	return text
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
