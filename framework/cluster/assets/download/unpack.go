package download

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// unpack writes the regular files of a .tar.gz into a directory, without the directories of the
// archive. Executable files stay executable. It is an errTooLarge if the unpacked archive
// exceeds the limit in bytes.
func unpack(archive, dir string, limit int64) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	for entries := tar.NewReader(limited(unzipped, limit)); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		mode := os.FileMode(header.Mode)&0o555 | 0o600
		if err := writeFile(filepath.Join(dir, path.Base(header.Name)), mode, entries); err != nil {
			return err
		}
	}
}

func writeFile(name string, mode os.FileMode, content io.Reader) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return nil
}
