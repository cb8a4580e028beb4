//go:build unix

package userfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestMkdirTemp(t *testing.T) {
	tests := map[string]struct {
		mode   os.FileMode
		owner  int // 0 means this user
		unsafe bool
	}{
		"own":                         {mode: 0o700},
		"readable by every user":      {mode: 0o755},
		"as /tmp":                     {mode: 0o777 | os.ModeSticky},
		"for all":                     {mode: 0o777, unsafe: true},
		"of another user":             {mode: 0o777, owner: stranger, unsafe: true},
		"of another user, as /tmp":    {mode: 0o777 | os.ModeSticky, owner: stranger, unsafe: true},
		"of another user, of no mode": {mode: 0o000, owner: stranger, unsafe: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.owner != 0 && os.Geteuid() != 0 {
				t.Skip("only root can change an owner")
			}
			parent := filepath.Join(t.TempDir(), "temporary")
			must(t, os.Mkdir(parent, 0o700), os.Chmod(parent, test.mode))
			if test.owner != 0 {
				must(t, os.Chown(parent, test.owner, -1))
			}
			t.Setenv("TMPDIR", parent)
			dir, err := MkdirTemp("folder-")
			entries, _ := os.ReadDir(parent)
			switch {
			case test.unsafe && (!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "set TMPDIR") || len(entries) > 0):
				t.Errorf("MkdirTemp = %q, %v, with %d entries; want ErrUnsafe with what to do, and none", dir, err, len(entries))
			case !test.unsafe && (err != nil || filepath.Dir(dir) != parent):
				t.Errorf("MkdirTemp = %q, %v; want a folder in %s", dir, err, parent)
			}
		})
	}
}

func TestMkdirTempInMissing(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := MkdirTemp(""); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("MkdirTemp = %v, want os.ErrNotExist with what to do", err)
	}
}

// Another user can replace a folder exactly where MkdirTemp makes none.
func TestAnotherUserReplaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	const user, other = stranger, stranger + 1
	for mode, safe := range map[os.FileMode]bool{0o777: false, 0o777 | os.ModeSticky: true} {
		t.Run(mode.String(), func(t *testing.T) {
			above := t.TempDir()
			parent := filepath.Join(above, "temporary")
			victim := filepath.Join(parent, "run")
			must(t, os.Chmod(filepath.Dir(above), 0o755), os.Chmod(above, 0o755), os.Mkdir(parent, 0o700), os.Chmod(parent, mode), os.Mkdir(victim, 0o700), os.Chown(victim, user, -1))
			swap := exec.CommandContext(t.Context(), "mv", victim, victim+".taken")
			swap.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
			output, err := swap.CombinedOutput()
			if swapped := err == nil; swapped == safe {
				t.Errorf("another user replaced the folder: %v, %v %s; want %v", swapped, err, output, !safe)
			}
			t.Setenv("TMPDIR", parent)
			if _, err := TempDir(); errors.Is(err, ErrUnsafe) == safe {
				t.Errorf("TempDir = %v; want ErrUnsafe: %v", err, !safe)
			}
		})
	}
}
