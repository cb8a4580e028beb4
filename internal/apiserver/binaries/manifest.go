package binaries

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// manifestName is the file in each entry of the cache that describes its programs.
const manifestName = "admissiontest-manifest.json"

// manifest describes an entry of the cache when it was installed.
type manifest struct {
	Version string   `json:"version"`
	Main    string   `json:"main"`              // mainDigest when it was installed
	Archive string   `json:"archive,omitempty"` // the digest of the archive, if it was downloaded: then Main says nothing
	Plugins []string `json:"plugins,omitempty"` // the names of those that were compiled in
}

// check checks a directory of a store, by its manifest, or by running the programs if it has
// no manifest. The error is an ErrDamaged.
func check(ctx context.Context, dir string, v version) error {
	m, err := readManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		got, err := probe(ctx, dir)
		if err == nil && !v.matches(got) {
			err = fmt.Errorf("%w: %s --version printed %s, want %s", ErrDamaged, filepath.Join(dir, apiserverName), got, v)
		}
		return err
	}
	if err != nil {
		return err
	}
	if m.Version != string(v) {
		return fmt.Errorf("%w: the manifest in %s is of version %q, want %s", ErrDamaged, dir, m.Version, v)
	}
	if digest, err := mainDigest(); m.Archive == "" && (err != nil || m.Main != digest) {
		return fmt.Errorf("%w: another version of admissiontest built %s", ErrDamaged, dir)
	}
	for _, name := range programs() {
		if err := executable(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// addManifest adds what the manifest of the directory says, if it has one.
func (a *Assets) addManifest() {
	m, err := readManifest(a.Dir)
	if err != nil {
		return
	}
	a.Version, a.Plugins = cmp.Or(a.Version, m.Version), m.Plugins
	digest, err := mainDigest()
	a.ObservesPlugins = err == nil && m.Archive == "" && m.Main == digest
}

// safe returns an ErrUnsafe if another user could have written a directory or what this package
// executes or trusts in it.
func safe(dir string) error {
	for _, name := range append(programs(), manifestName, ".") {
		err := userfile.CheckOwner(filepath.Join(dir, name))
		if errors.Is(err, ErrUnsafe) {
			return fmt.Errorf("%w; if you trust it, change its owner or mode, otherwise remove it; or use other binaries: --assets-dir DIR", err)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return nil
}

// seal makes the programs of a new directory executable and writes its manifest.
func seal(dir string, m manifest) (err error) {
	if m.Main, err = mainDigest(); err != nil {
		return err
	}
	for _, name := range programs() {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			return fmt.Errorf("seal %s: %w", dir, err)
		}
	}
	return m.write(dir)
}

func readManifest(dir string) (*manifest, error) {
	path := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	m := new(manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%w: manifest %s: %w", ErrDamaged, path, err)
	}
	return m, nil
}

// write writes the manifest. It is the last file of an entry, which is not in its place yet.
func (m *manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, manifestName), append(text, '\n'), 0o644) //nolint:gosec // it is no secret
	}
	if err != nil {
		return fmt.Errorf("write manifest of %s: %w", dir, err)
	}
	return nil
}
