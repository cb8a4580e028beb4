package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// probeLimit is the limit for a program to print its version.
const probeLimit = 20 * time.Second

// probe runs both programs with --version and returns the Kubernetes version. The error is an
// ErrDamaged, unless the context ended.
func probe(ctx context.Context, dir string) (string, error) {
	for _, name := range programs() {
		if err := executable(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	if _, err := printed(ctx, filepath.Join(dir, etcdName), "etcd Version: "); err != nil {
		return "", err
	}
	return printed(ctx, filepath.Join(dir, apiserverName), "Kubernetes v")
}

// executable checks that a path is an executable file.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a file: its type is %s", ErrDamaged, path, info.Mode().Type())
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%w: %s is not executable (mode %s): chmod +x it", ErrDamaged, path, info.Mode().Perm())
	}
	return nil
}

// printed runs `path --version` and returns the word after prefix.
func printed(ctx context.Context, path, prefix string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, path, "--version")
	cmd.Env = append(os.Environ(), "GOCOVERDIR=") // this is not a run to measure
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("run %s --version: %w", path, context.Cause(ctx))
	}
	if limited.Err() != nil {
		return "", fmt.Errorf("%w: %s --version did not end in %s", ErrDamaged, path, probeLimit)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s --version does not run: %w", ErrDamaged, path, err)
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				return fields[0], nil
			}
		}
	}
	return "", fmt.Errorf("%w: %s --version printed %.80q, want a line %q", ErrDamaged, path, out, prefix+"…")
}
