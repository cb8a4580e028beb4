package served

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/owned"
)

// short returns a folder with a path that is short enough for sockets.
func short(t *testing.T) Place {
	t.Helper()
	dir, err := os.MkdirTemp("", "at") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return Place{Dir: filepath.Join(dir, "served")}
}

// A socket that a killed process left, and a file that is no socket, are removed by the next process
// that looks there.
func TestLeft(t *testing.T) {
	for name, leave := range map[string]func(path string) error{
		"socket": func(path string) error {
			listener, err := net.Listen("unix", path)
			if err != nil {
				return err
			}
			listener.(*net.UnixListener).SetUnlinkOnClose(false)
			return listener.Close()
		},
		"half-written file": func(path string) error { return os.WriteFile(path, []byte(`{"pid": 1`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			p := short(t)
			dir, err := p.make()
			if err != nil {
				t.Fatal(err)
			}
			left := func() bool {
				t.Helper()
				path := filepath.Join(dir, "k"+socketSuffix)
				if err := leave(path); err != nil {
					t.Fatal(err)
				}
				_, err := os.Lstat(path)
				return err == nil
			}
			if !left() {
				t.Fatal("nothing was left")
			}
			if session, err := p.Find(t.Context(), "k"); session != nil || err != nil {
				t.Errorf("Find returns %v, %v; want nothing", session, err)
			}
			if _, keys, err := p.keys(); len(keys) > 0 || err != nil {
				t.Errorf("after Find there are the keys %v; %v", keys, err)
			}
			left()
			if all, err := p.List(t.Context()); len(all) > 0 || err != nil {
				t.Errorf("List returns %v, %v; want nothing", all, err)
			}
			left()
			listener, err := p.listen(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.listen(t.Context(), "k"); !errors.Is(err, errRunning) {
				t.Errorf("a second listen: %v; want %v", err, errRunning)
			}
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
			if _, keys, err := p.keys(); len(keys) > 0 || err != nil {
				t.Errorf("at the end there are the keys %v; %v", keys, err)
			}
		})
	}
}

// A folder that other users can use is not used.
func TestFolderOfOthers(t *testing.T) {
	p := short(t)
	if session, err := p.Find(t.Context(), "k"); session != nil || err != nil {
		t.Errorf("without a folder, Find returns %v, %v; want nothing", session, err)
	}
	dir, err := p.make()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the test is about such a folder
		t.Fatal(err)
	}
	if _, err := p.Find(t.Context(), "k"); !errors.Is(err, owned.ErrUnsafe) {
		t.Errorf("Find: %v; want %v", err, owned.ErrUnsafe)
	}
	if _, err := p.listen(t.Context(), "k"); !errors.Is(err, owned.ErrUnsafe) || !strings.Contains(err.Error(), "want 0700") {
		t.Errorf("listen: %v; want %v", err, owned.ErrUnsafe)
	}
}

func TestLongPath(t *testing.T) {
	p := short(t)
	p.Dir += strings.Repeat("x", socketLimit)
	if _, err := p.listen(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "set XDG_CACHE_HOME to a directory with a shorter path") {
		t.Errorf("listen: %v", err)
	}
}
