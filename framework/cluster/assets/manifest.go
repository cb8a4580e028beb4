package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/admissiontest/admissiontest/internal/owned"
)

// manifestName is the file in each entry of the cache that describes its programs.
const manifestName = "admissiontest-manifest.json"

// manifest describes an entry of the cache when it was installed.
type manifest struct {
	Version string            `json:"version"`
	Origin  string            `json:"origin"`            // SourceBuilt or SourceDownloaded
	Main    string            `json:"main,omitempty"`    // of a built kube-apiserver: mainDigest
	Plugins []string          `json:"plugins,omitempty"` // the names of those that were compiled in
	Files   map[string]record `json:"files"`
}

// record describes one file. A file with the same stamp was not changed, so its digest need
// not be computed.
type record struct {
	SHA256 string `json:"sha256"`
	Stamp  stamp  `json:"stamp"`
}

// stamp has the metadata of a file. Changed and Inode are zero if the file system does not
// have them.
type stamp struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds
	Changed  int64  `json:"changed"`  // nanoseconds
	Inode    uint64 `json:"inode"`
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
	return m.verify(dir)
}

// observesPlugins reports whether the kube-apiserver in a directory can record the calls of its
// plugins. Outdated is true if an older version of this package built it, so that it cannot.
func observesPlugins(dir string) (observes, outdated bool) {
	m, err := readManifest(dir)
	if err != nil || m.Origin != SourceBuilt || m.verify(dir) != nil {
		return false, false
	}
	digest, err := mainDigest()
	return err == nil && m.Main == digest, err == nil && m.Main != digest
}

// safe returns an ErrUnsafe if another user could have written a directory or what this package
// executes or trusts in it.
func safe(dir string) error {
	for _, name := range append(programs(), manifestName, ".") {
		err := owned.Check(filepath.Join(dir, name))
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
func seal(dir string, m manifest) error {
	m.Files = map[string]record{}
	if m.Origin == SourceBuilt {
		digest, err := mainDigest()
		if err != nil {
			return err
		}
		m.Main = digest
	}
	for _, name := range programs() {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0o755); err != nil {
			return fmt.Errorf("seal %s: %w", dir, err)
		}
		if err := m.add(path); err != nil {
			return fmt.Errorf("seal %s: %w", dir, err)
		}
	}
	return m.write(dir)
}

func (m *manifest) add(path string) error {
	digest, err := digestOf(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	m.Files[filepath.Base(path)] = record{SHA256: digest, Stamp: stampOf(info)}
	return nil
}

// verify compares a directory with its manifest. If only stamps differ, as after a copy, it
// updates them, so that the next check does not read the files.
func (m *manifest) verify(dir string) error {
	fresh := manifest{Version: m.Version, Origin: m.Origin, Main: m.Main, Plugins: m.Plugins, Files: map[string]record{}}
	changed := false
	for _, name := range programs() {
		path := filepath.Join(dir, name)
		if err := executable(path); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		want, now := m.Files[name], stampOf(info)
		if want.Stamp == now {
			fresh.Files[name] = want
			continue
		}
		if want.Stamp.Size != now.Size {
			return fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, path, now.Size, want.Stamp.Size)
		}
		if err := fresh.add(path); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if got := fresh.Files[name].SHA256; got != want.SHA256 {
			return fmt.Errorf("%w: the content of %s changed (sha256 %.12s…, want %.12s…)",
				ErrDamaged, path, got, want.SHA256)
		}
		changed = true
	}
	if changed {
		// This only saves time, so an error, as of a read-only cache, does not matter.
		_ = fresh.write(dir)
	}
	return nil
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

// write writes the manifest atomically.
func (m *manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write manifest of %s: %w", dir, err)
	}
	f, err := os.CreateTemp(dir, ".manifest-*")
	if err != nil {
		return fmt.Errorf("write manifest of %s: %w", dir, err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, manifestName))
	}
	if err != nil {
		return fmt.Errorf("write manifest of %s: %w", dir, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
