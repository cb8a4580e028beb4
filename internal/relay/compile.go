package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// ErrNoToolchain means: there is no Go toolchain to compile the binary with.
var ErrNoToolchain = errors.New("no Go toolchain: install one, or use an existing image (--hook-image REFERENCE; `admissiontest image --push REFERENCE` makes one on a machine with Go)")

// The module and the package of the binary.
const (
	module  = "github.com/admissiontest/admissiontest"
	program = module + "/internal/relay/cmd/relay"
	// ImageOfCommand is the ImageOptions.Program of admissiontest itself.
	ImageOfCommand = module + "/cmd/admissiontest"
)

// own reports whether the program is one of this module, which can be compiled everywhere.
func (o ImageOptions) own() bool { return o.Program == "" || o.Program == ImageOfCommand }

func (o ImageOptions) complete() ImageOptions {
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	if o.GoCommand == "" {
		o.GoCommand = "go"
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// compile returns the binary and its path in the image.
func compile(ctx context.Context, options ImageOptions) (binary []byte, entrypoint string, err error) {
	if _, err := exec.LookPath(options.GoCommand); err != nil {
		return nil, "", fmt.Errorf("%w (%w)", ErrNoToolchain, err)
	}
	entrypoint, err = entrypointOf(ctx, options)
	if err != nil && options.own() {
		var temporary string
		if temporary, err = temporaryModule(ctx, options, err); err != nil {
			return nil, "", err
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		options.Dir = temporary
		entrypoint, err = entrypointOf(ctx, options)
	}
	if err != nil {
		return nil, "", err
	}
	options.Progress("compiling " + options.what() + " for linux/" + options.Arch)
	dir, err := userfile.MkdirTemp("admissiontest-image-*")
	if err != nil {
		return nil, "", fmt.Errorf("compile: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "program")
	if _, err := runGo(ctx, options, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, options.program()); err != nil {
		return nil, "", err
	}
	if binary, err = os.ReadFile(out); err != nil {
		return nil, "", fmt.Errorf("compile: %w", err)
	}
	return binary, entrypoint, nil
}

// program returns the package of the program.
func (o ImageOptions) program() string {
	if o.Program == "" {
		return program
	}
	return o.Program
}

// what describes the program, for messages.
func (o ImageOptions) what() string {
	if o.Program == "" {
		return "the program of the relay pod"
	}
	return "program " + o.Program
}

// entrypointOf returns the path of the program in the image. It fails if the module of ImageOptions.Dir does not have the
// program.
func entrypointOf(ctx context.Context, options ImageOptions) (string, error) {
	listed, err := runGo(ctx, options, "list", "-f", "{{.Name}} {{.ImportPath}}", options.program())
	if err != nil {
		return "", err
	}
	name, importPath, _ := strings.Cut(strings.TrimSpace(string(listed)), " ")
	if name != "main" {
		return "", fmt.Errorf("%s is package %s; want a program, package main", options.what(), name)
	}
	return "/" + path.Base(importPath), nil
}

// temporaryModule creates a module in a temporary folder that requires this module in the
// version of this process. It is for use in a folder whose module does not require this one.
func temporaryModule(ctx context.Context, options ImageOptions, cause error) (string, error) {
	version := ownVersion()
	if ctx.Err() != nil || version == "" {
		return "", fmt.Errorf("%w\nrun in a module that requires %s, or use an existing image (--hook-image)", cause, module)
	}
	dir, err := userfile.MkdirTemp("admissiontest-image-*")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	options.Dir = dir
	for _, args := range [][]string{{"mod", "init", "example.invalid/image"}, {"get", options.program() + "@" + version}} {
		if _, err := runGo(ctx, options, args...); err != nil {
			_ = os.RemoveAll(dir)
			return "", err
		}
	}
	return dir, nil
}

// ownVersion returns the version of this module in this process, or "" if that version cannot
// be downloaded.
func ownVersion() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	found := build.Main
	for _, dependency := range build.Deps {
		if dependency.Path == module && dependency.Replace == nil {
			found = *dependency
		}
	}
	if found.Path != module || !strings.HasPrefix(found.Version, "v") || strings.Contains(found.Version, "+dirty") {
		return ""
	}
	return found.Version
}

// runGo runs `go` in ImageOptions.Dir and returns its standard output.
func runGo(ctx context.Context, options ImageOptions, args ...string) ([]byte, error) {
	if _, err := userfile.TempDir(); err != nil { // go compiles there
		return nil, err
	}
	var out, stderr bytes.Buffer
	command := exec.CommandContext(ctx, options.GoCommand, args...)
	command.Dir, command.Stdout, command.Stderr = options.Dir, &out, &stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+options.Arch, "GOFLAGS=-mod=readonly") // go.mod must not change
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("run go %s: %w", args[0], context.Cause(ctx))
		}
		return nil, fmt.Errorf("run go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), nil
}
