package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// server is a control plane whose kube-apiserver is compiled from the module from which package binaries compiles
// one: with other flags, or with changes in its vendored libraries.
type server struct {
	folder string   // of the programs
	module string   // the folder of the module
	args   []string // of go build
}

// openServer writes the module, and a copy of the unchanged programs, into folders below work. It builds these
// programs, unless the cache has them.
func openServer(ctx context.Context, version, work string, out io.Writer) (server, error) {
	o := binaries.Options{Version: version, Progress: func(line string) { _, _ = fmt.Fprintln(out, line) }}
	s := server{folder: filepath.Join(work, "server"), module: filepath.Join(work, "module")}
	plain, err := binaries.Build(ctx, o)
	if err != nil {
		return s, err
	}
	if err := os.CopyFS(s.folder, os.DirFS(plain.Dir)); err != nil {
		return s, fmt.Errorf("copy the control plane: %w", err)
	}
	if err := os.Mkdir(s.module, 0o755); err != nil {
		return s, fmt.Errorf("make a folder for the module: %w", err)
	}
	s.args, err = binaries.WriteModule(ctx, o, s.module)
	return s, err
}

// vendor copies the libraries of the module into its folder. Then build compiles these copies. Libraries of other
// operating systems, which the module does not need, are left out.
func (s server) vendor(ctx context.Context) error { return s.goCommand(ctx, "mod", "vendor", "-e") }

// source returns the path of a vendored file, which is named by the import path of its package.
func (s server) source(file string) string {
	return filepath.Join(s.module, "vendor", filepath.FromSlash(file))
}

// build compiles the kube-apiserver from the module as it is now.
func (s server) build(ctx context.Context, flags ...string) error {
	return s.goCommand(ctx, slices.Concat([]string{"build"}, s.args, flags, []string{"-o", filepath.Join(s.folder, "kube-apiserver"), "."})...)
}

// goCommand runs `go` in the module. The error has what it printed.
func (s server) goCommand(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.module
	command.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, said)
	}
	return nil
}
