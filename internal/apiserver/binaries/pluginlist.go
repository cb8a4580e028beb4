package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listed is a package as `go list -json` prints it.
type listed struct {
	ImportPath, Dir, Name                          string
	Standard                                       bool
	Module                                         *listedModule
	GoFiles, EmbedFiles, SFiles, SysoFiles, HFiles []string
}

// listedModule is the module of a package.
type listedModule struct {
	Path, Version, Dir, GoMod, GoVersion string
	Main                                 bool
	Replace                              *struct{ Path, Version, Dir string }
}

// local reports whether the files of the module are in a folder of the user, and not in the
// module cache.
func (m *listedModule) local() bool { return m.Main || m.Replace != nil && m.Replace.Version == "" }

// pluginPackage is a Plugin whose package and dependencies are known.
type pluginPackage struct {
	Plugin
	path    string
	gomod   string   // the go.mod of the module in which it was listed
	printed []byte   // by go list
	all     []listed // without the standard library
}

// list finds the packages of the plugins, without compiling them.
func (t *toolchain) list(ctx context.Context, plugins []Plugin) ([]pluginPackage, error) {
	var found []pluginPackage
	for _, p := range plugins {
		one, err := t.listOne(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("plugin package %s: %w", p.Package, err)
		}
		if slices.ContainsFunc(found, func(other pluginPackage) bool { return other.path == one.path }) {
			return nil, fmt.Errorf("plugin package %s: %w: it is given twice", p.Package, ErrBadPlugin)
		}
		found = append(found, one)
	}
	return found, nil
}

func (t *toolchain) listOne(ctx context.Context, p Plugin) (pluginPackage, error) {
	one := pluginPackage{Plugin: p}
	dir, pattern := p.folder()
	if info, err := os.Stat(filepath.Join(dir, ".")); err != nil || !info.IsDir() {
		return one, fmt.Errorf("%w: there is no folder %s; if you mean an import path, write it without a dot at its beginning", ErrBadPlugin, dir)
	}
	users := *t
	users.env = append(slices.Clone(t.env), "GOFLAGS=-mod=readonly -buildvcs=false") // the module is the user's
	out, err := users.run(ctx, goCall{
		dir: dir, doing: "listing the packages of " + p.Package,
		args: []string{"list", "-deps", "-json=ImportPath,Dir,Name,Standard,Module,GoFiles,EmbedFiles,SFiles,SysoFiles,HFiles", "--", pattern},
	})
	if err != nil {
		return one, t.badPlugin(ctx, err)
	}
	gomod, err := users.run(ctx, goCall{dir: dir, doing: "looking for go.mod", args: []string{"env", "GOMOD"}})
	if err != nil {
		return one, err
	}
	one.gomod, one.printed = strings.TrimSpace(string(gomod)), out
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return one, fmt.Errorf("read the output of go list: %w", err)
		}
		if !l.Standard {
			one.all = append(one.all, l)
		}
	}
	if len(one.all) == 0 {
		return one, fmt.Errorf("%w: go list prints no package outside of the standard library", ErrBadPlugin)
	}
	last := one.all[len(one.all)-1] // dependencies come first
	one.path = last.ImportPath
	if last.Module == nil {
		return one, fmt.Errorf("%w: it is in no module: want a folder with a go.mod, or below one", ErrBadPlugin)
	}
	if last.Name == "main" {
		return one, fmt.Errorf("%w: it is a main package, which cannot be imported: move the plugin to another package", ErrBadPlugin)
	}
	return one, last.registers()
}

// badPlugin returns the error of `go` as one of the plugin, unless the context ended or there is
// no toolchain.
func (t *toolchain) badPlugin(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrNoToolchain) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrBadPlugin, err)
}

// registers returns nil if a package has a function Register.
func (l listed) registers() error {
	for _, name := range l.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBadPlugin, err)
		}
		for _, one := range file.Decls {
			if function, ok := one.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name == "Register" {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: package %s in %s has no function Register(*admission.Plugins), which registers its plugins", ErrBadPlugin, l.Name, l.Dir)
}

// digest returns the digest of all that decides about a kube-apiserver with plugins, except the versions of Kubernetes
// and of Go: our own source, the options, what go list printed, and the content of local files.
func (t *toolchain) digest(packages []pluginPackage) (string, error) {
	main, err := mainDigest()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %t\n", main, t.job.covers()) // a hash does not fail
	for _, p := range packages {
		_, _ = fmt.Fprintf(sum, "%q %q\n%s\n", p.path, p.String(), p.printed)
		for _, path := range p.localFiles() {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("read the source of a plugin: %w", err)
			}
			_, _ = fmt.Fprintf(sum, "%q %x\n", path, sha256.Sum256(text))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// localFiles returns the files of the user from which the packages of a plugin are built.
func (p pluginPackage) localFiles() []string {
	var files []string
	for _, l := range p.all {
		if l.Module == nil || !l.Module.local() {
			continue
		}
		files = append(files, l.Module.GoMod)
		for _, name := range slices.Concat(l.GoFiles, l.EmbedFiles, l.SFiles, l.SysoFiles, l.HFiles) {
			files = append(files, filepath.Join(l.Dir, name))
		}
	}
	return files
}

// generate returns the file that names the packages of the plugins.
func generate(packages []pluginPackage) string {
	var imports, list strings.Builder
	for i, p := range packages {
		name := fmt.Sprintf("plugin%d", i+1)
		_, _ = fmt.Fprintf(&imports, "\t%s %q\n", name, p.path)
		_, _ = fmt.Fprintf(&list, "\t\t{Path: %q, Register: %s.Register, Last: %t, Off: %t},\n", p.path, name, p.Last, p.Off)
	}
	return "package main\n\nimport (\n" + imports.String() + "\n\t\"" + temporaryPath + "/kubeapiserver/observe\"\n)\n\nfunc packages() []observe.Package {\n\treturn []observe.Package{\n" +
		list.String() + "\t}\n}\n"
}
