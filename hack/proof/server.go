package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// server builds kube-apiservers from the module from which package binaries builds one: with other flags, or
// with changes in copies of modules of Kubernetes.
type server struct {
	plain   binaries.Assets   // the unchanged programs
	dir     string            // of the module
	args    []string          // of go build
	folders map[string]string // the sources of modules, by path
}

// modules returns the modules whose files are measured and changed.
func modules() []string {
	return []string{switchModule, "k8s.io/kubernetes", podSecurity}
}

// openServer writes the module into a folder below work. It also builds the unchanged programs, unless the
// cache has them.
func openServer(ctx context.Context, version, work string, out io.Writer) (*server, error) {
	o := binaries.Options{Version: version, Progress: func(line string) { _, _ = fmt.Fprintln(out, line) }}
	plain, err := binaries.Build(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &server{plain: plain, dir: filepath.Join(work, "module"), folders: map[string]string{}}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for the source: %w", err)
	}
	if s.args, err = binaries.WriteModule(ctx, o, s.dir); err != nil {
		return nil, err
	}
	listed, err := s.goCommand(ctx, append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, modules()...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(listed) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.folders[module] = dir
	}
	return s, nil
}

// goCommand runs `go` in the module, and returns what it printed, which an error has too.
func (s *server) goCommand(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	said, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, said)
	}
	return string(said), nil
}

// copyModules copies the modules, and makes the module use the copies.
func (s *server) copyModules(ctx context.Context, to string) error {
	for _, module := range modules() {
		folder := filepath.Join(to, filepath.FromSlash(module))
		if err := os.CopyFS(folder, os.DirFS(s.folders[module])); err != nil {
			return fmt.Errorf("copy module %s: %w", module, err)
		}
		if _, err := s.goCommand(ctx, "mod", "edit", "-replace", module+"="+folder); err != nil {
			return err
		}
		s.folders[module] = folder
	}
	return nil
}

// folder returns the folder of a module.
func (s *server) folder(module string) string { return s.folders[module] }

// build makes a folder with the control plane, whose kube-apiserver is compiled from the module as it is now.
// The error has what the compiler printed.
func (s *server) build(ctx context.Context, to string, flags ...string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(s.plain.Dir)); err != nil {
		return fmt.Errorf("copy the control plane: %w", err)
	}
	args := slices.Concat([]string{"build"}, s.args, flags, []string{"-o", filepath.Join(to, "kube-apiserver"), "."})
	_, err := s.goCommand(ctx, args...)
	return err
}

// pathIn returns the path of a file, which is named by its import path.
func pathIn(folder func(module string) string, file string) (string, error) {
	for _, module := range modules() {
		if rest, ok := strings.CutPrefix(file, module+"/"); ok {
			return filepath.Join(folder(module), filepath.FromSlash(rest)), nil
		}
	}
	return "", fmt.Errorf("%s is in no module that is measured", file)
}
