//go:build unix

package userfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stranger is the number of a user who is neither this one nor root.
const stranger = 54321

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	asRoot := func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can change an owner")
		}
	}
	tests := map[string]struct {
		change func(t *testing.T, dir, file string)
		want   string // part of the error; empty means none
	}{
		"own":                  {change: func(*testing.T, string, string) {}},
		"group root may write": {change: func(t *testing.T, dir, _ string) { asRoot(t); must(t, os.Chown(dir, 0, 0), os.Chmod(dir, 0o770)) }},
		"sticky directory":     {change: func(t *testing.T, dir, _ string) { must(t, os.Chmod(dir, 0o777|os.ModeSticky)) }},
		"file for all":         {func(t *testing.T, _, file string) { must(t, os.Chmod(file, 0o757)) }, "program can be written by every user (mode -rwxr-xrwx): chmod o-w it"},
		"directory for all":    {func(t *testing.T, dir, _ string) { must(t, os.Chmod(dir, 0o777)) }, "inner can be written by every user"},
		"directory above":      {func(t *testing.T, dir, _ string) { must(t, os.Chmod(filepath.Dir(dir), 0o777)) }, "outer can be written by every user"},
		"file for a group": {func(t *testing.T, _, file string) {
			asRoot(t)
			must(t, os.Chown(file, -1, stranger), os.Chmod(file, 0o775))
		}, "program can be written by group 54321 (mode -rwxrwxr-x): chmod g-w it"},
		"file of another user":      {func(t *testing.T, _, file string) { asRoot(t); must(t, os.Chown(file, stranger, -1)) }, "program belongs to user 54321, want user 0 or root"},
		"directory of another user": {func(t *testing.T, dir, _ string) { asRoot(t); must(t, os.Chown(dir, stranger, -1)) }, "inner belongs to user 54321"},
		"link to a file of others": {func(t *testing.T, dir, file string) {
			target := filepath.Join(t.TempDir(), "elsewhere")
			must(t, os.WriteFile(target, nil, 0o600), os.Chmod(target, 0o606), os.Remove(file), os.Symlink(target, file))
		}, "elsewhere can be written by every user"},
		"link in a directory for all": {func(t *testing.T, dir, file string) {
			target := filepath.Join(t.TempDir(), "elsewhere")
			must(t, os.WriteFile(target, nil, 0o600), os.Remove(file), os.Symlink(target, file), os.Chmod(dir, 0o777))
		}, "inner can be written by every user"},
		"link of another user": {func(t *testing.T, _, file string) {
			asRoot(t)
			target := filepath.Join(t.TempDir(), "elsewhere")
			must(t, os.WriteFile(target, nil, 0o600), os.Remove(file), os.Symlink(target, file), os.Lchown(file, stranger, -1))
		}, "program belongs to user 54321"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "outer", "inner")
			file := filepath.Join(dir, "program")
			must(t, os.MkdirAll(dir, 0o755), os.WriteFile(file, nil, 0o700))
			test.change(t, dir, file)
			err := CheckOwner(file)
			if test.want == "" && err != nil {
				t.Errorf("Check = %v, want none", err)
			}
			if test.want != "" && (!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("Check = %v; want ErrUnsafe with %q", err, test.want)
			}
		})
	}
}

func TestCheckMissing(t *testing.T) {
	if err := CheckOwner(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrUnsafe) {
		t.Errorf("Check = %v, want os.ErrNotExist", err)
	}
}
