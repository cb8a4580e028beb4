package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/admissiontest/admissiontest/internal/owned"
)

// ErrUnsafe means: another user could have written the cache of compiled binaries.
var ErrUnsafe = owned.ErrUnsafe

// cache returns the folder for compiled binaries. The error is an ErrUnsafe if another user
// can write to it.
func (o Options) cache() (string, error) {
	dir := o.CacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache of compiled binaries: %w; set HOME, or use an existing image (--hook-image)", err)
		}
		dir = filepath.Join(user, "admissiontest", "image")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache of compiled binaries: %w; choose another directory (XDG_CACHE_HOME), or use an existing image (--hook-image)", err)
	}
	return dir, safe(dir)
}

// safe returns an ErrUnsafe, with what to do, if another user could have written a path.
func safe(path string) error {
	if err := owned.Check(path); errors.Is(err, ErrUnsafe) {
		return fmt.Errorf("use a compiled binary of the cache: %w; if you trust it, change its owner or mode, otherwise remove it", err)
	}
	return nil // other errors show when the path is used
}

// load returns a binary of the cache, or nil if the cache does not have it.
func load(path string) ([]byte, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, nil //nolint:nilerr // it is compiled again
	}
	return binary, safe(path)
}
