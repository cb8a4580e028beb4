package served

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/admissiontest/admissiontest/internal/owned"
)

const (
	// socketSuffix is the suffix of a socket. Its name before that is the Key.
	socketSuffix = ".sock"
	// logSuffix is the suffix of the file of CreateLog.
	logSuffix = ".log"
	// lockName is the lock of those who make or remove sockets.
	lockName = "lock"
	// lockPoll is the time between two attempts to get the lock, which is held for moments.
	lockPoll = 20 * time.Millisecond
	// socketLimit is the limit of the path of a Unix socket, in bytes: that of macOS, which is the
	// lowest.
	socketLimit = 103
)

// Place is the folder of the sockets of this user. Its zero value is the default one.
type Place struct {
	// Dir is the folder. Empty means the folder "served" in the cache of admissiontest.
	Dir string
}

// dir returns the folder. The error is an os.ErrNotExist if it does not exist, and an owned.ErrUnsafe
// if another user could use or replace what is in it.
func (p Place) dir() (string, error) {
	dir, err := p.path()
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%w: %s has the mode %s; want 0700", owned.ErrUnsafe, dir, info.Mode().Perm())
	}
	return dir, owned.Check(dir)
}

func (p Place) path() (string, error) {
	if p.Dir != "" {
		return filepath.Abs(p.Dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of served API servers: %w; set HOME", err)
	}
	return filepath.Join(cache, "admissiontest", "served"), nil
}

// make makes the folder.
func (p Place) make() (string, error) {
	dir, err := p.path()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make the folder of served API servers: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder of served API servers: %w", err)
	}
	if dir, err = p.dir(); err != nil {
		return "", fmt.Errorf("use the folder of served API servers: %w", err)
	}
	return dir, nil
}

// CreateLog makes the file for what the process of a key prints. Run removes it unless it fails.
func (p Place) CreateLog(key string) (*os.File, error) {
	dir, err := p.make()
	if err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, key+logSuffix), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

// listen listens on the socket of a key. The error is errRunning if another process does.
func (p Place) listen(ctx context.Context, key string) (net.Listener, error) {
	dir, err := p.make()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, key+socketSuffix)
	if len(path) > socketLimit {
		return nil, fmt.Errorf("listen on %s: the path has %d bytes, want at most %d: set XDG_CACHE_HOME to a directory with a shorter path",
			path, len(path), socketLimit)
	}
	var listener net.Listener
	err = locked(ctx, dir, func() error {
		if answered, err := removeStale(ctx, path); err != nil || answered {
			return errors.Join(err, errRunning)
		}
		listener, err = new(net.ListenConfig).Listen(ctx, "unix", path)
		return err
	})
	return listener, err
}

// errRunning means that another process serves the key.
var errRunning = errors.New("another process serves this API server")

// locked calls a function that makes or removes sockets.
func locked(ctx context.Context, dir string, do func() error) error {
	lock := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	held, err := lock.TryLockContext(ctx, lockPoll)
	if err != nil || !held {
		return errors.Join(fmt.Errorf("lock %s: %w", lock.Path(), err), lock.Close())
	}
	return errors.Join(do(), lock.Close())
}

// removeStale removes a socket that nothing listens on. Answered is true if something does. The
// caller has the lock.
func removeStale(ctx context.Context, path string) (answered bool, err error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return true, connection.Close()
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTSOCK):
		return false, os.Remove(path)
	}
	return false, fmt.Errorf("use the socket of a served API server: %w", err)
}

// keys returns the keys of all sockets.
func (p Place) keys() (dir string, keys []string, err error) {
	if dir, err = p.dir(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", nil, nil
		}
		return "", nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	for _, entry := range entries {
		if key, ok := strings.CutSuffix(entry.Name(), socketSuffix); ok {
			keys = append(keys, key)
		}
	}
	return dir, keys, nil
}
