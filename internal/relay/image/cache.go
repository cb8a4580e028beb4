package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// digestFile returns the file with the digest of a cached binary.
func digestFile(path string) string { return path + ".sha256" }

// load returns a binary of the cache, or nil if the cache does not have it with the digest that
// it was stored with.
func load(path string) ([]byte, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, nil //nolint:nilerr // it is compiled again
	}
	digest, err := os.ReadFile(digestFile(path))
	if err != nil {
		return nil, nil //nolint:nilerr // it is compiled again
	}
	for _, file := range []string{path, digestFile(path)} {
		if err := safe(file); err != nil {
			return nil, err
		}
	}
	if strings.TrimSpace(string(digest)) != digestOf(binary) {
		return nil, nil
	}
	return binary, nil
}

// store moves a compiled binary into the cache. An error is ignored: without the cache, the
// next call compiles again.
func store(compiled, path string, binary []byte) {
	if err := os.WriteFile(compiled+".sha256", []byte(digestOf(binary)+"\n"), 0o600); err != nil {
		return
	}
	if err := os.Rename(compiled+".sha256", digestFile(path)); err != nil {
		_ = os.Remove(compiled + ".sha256")
		return
	}
	_ = os.Rename(compiled, path)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
