//go:build unix

package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/relay/image"
)

// small writes a module with a program, which compiles in a moment, and returns options to
// build it, the path of its binary in the cache, and how often it was compiled.
func small(t *testing.T) (options image.Options, cached string, compiled *int) {
	t.Helper()
	dir, cache, count := t.TempDir(), t.TempDir(), 0
	for name, content := range map[string]string{"go.mod": "module example.com/small\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options = image.Options{Program: ".", Dir: dir, CacheDir: cache, Progress: func(line string) {
		if strings.HasPrefix(line, "compiling ") {
			count++
		}
	}}
	build(t, options)
	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("the cache has %q; want a binary", files)
	}
	return options, files[0], &count
}

func TestCachedBinaryIsUsed(t *testing.T) {
	options, _, compiled := small(t)
	build(t, options)
	if *compiled != 1 {
		t.Errorf("compiled %d times, want once", *compiled)
	}
}

// A cache that another user could have written is refused.
func TestUnsafeCache(t *testing.T) {
	const stranger = 54321
	for name, spoil := range map[string]func(cached string) error{
		"binary": func(cached string) error { return os.Chmod(cached, 0o777) },
		"folder": func(cached string) error { return os.Chmod(filepath.Dir(cached), 0o777) },
		"owner": func(cached string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(cached, 0o777) // only root can change an owner
			}
			return os.Chown(cached, stranger, -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			options, cached, compiled := small(t)
			if err := spoil(cached); err != nil {
				t.Fatal(err)
			}
			_, err := image.Build(t.Context(), options)
			if !errors.Is(err, image.ErrUnsafe) || !strings.Contains(err.Error(), "otherwise remove it") || *compiled != 1 {
				t.Errorf("Build = %v, compiled %d times; want ErrUnsafe with what to do", err, *compiled)
			}
		})
	}
}

// Without HOME there is no cache, and no folder with a predictable name is used instead.
func TestWithoutHome(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", temporary)
	_, err := image.Build(t.Context(), image.Options{})
	if err == nil || !strings.Contains(err.Error(), "set HOME, or use an existing image (--hook-image)") {
		t.Errorf("Build = %v; want an error with what to do", err)
	}
	if left, _ := os.ReadDir(temporary); len(left) > 0 {
		t.Errorf("Build left %v in TMPDIR", left)
	}
}
