package report

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of a report. SaveDir writes the first three.
const (
	JSONFile  = "report.json"
	JUnitFile = "junit.xml"
	HTMLFile  = "report.html"
	// CompressedFile is the key of a ConfigMap with a report, and the name of its file where a Pod mounts it.
	CompressedFile = JSONFile + ".gz"
)

// DirMode is the mode of a directory that is created for a report. Only the user who ran admissiontest can read a
// report, because its evidence can include objects of the cluster.
const DirMode = 0o700

// SaveDir writes report.json, junit.xml and report.html into a directory, which it creates with DirMode if it
// does not exist. The mode of the files is 0600. Each file is replaced atomically, so it is never
// incomplete. The error names the files that could not be written.
func SaveDir(dir string, r Report) error {
	if err := os.MkdirAll(dir, DirMode); err != nil {
		return fmt.Errorf("save report: create directory: %w", err)
	}
	return errors.Join(
		ReplaceFile(filepath.Join(dir, JSONFile), func(w io.Writer) error { return WriteJSON(w, r) }),
		ReplaceFile(filepath.Join(dir, JUnitFile), func(w io.Writer) error { return WriteJUnit(w, r) }),
		SaveHTML(dir, r),
	)
}

// SaveHTML writes report.html into a directory, which must exist.
func SaveHTML(dir string, r Report) error {
	return ReplaceFile(filepath.Join(dir, HTMLFile), func(w io.Writer) error { return WriteHTML(w, r) })
}

// WriteCompressed writes report.json, compressed by gzip.
func WriteCompressed(w io.Writer, r Report) error {
	compressed := gzip.NewWriter(w)
	return errors.Join(WriteJSON(compressed, r), compressed.Close())
}

// ReplaceFile writes a file of a report atomically: it writes a temporary file and renames it. The
// mode of the file is 0600.
func ReplaceFile(name string, write func(io.Writer) error) (err error) {
	var content bytes.Buffer // so that there is no file for long before it is complete
	if err := write(&content); err != nil {
		return fmt.Errorf("save report %s: %w", name, err)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("save report %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("save report %s: %w", name, err), os.Remove(file.Name()))
		}
	}()
	_, err = content.WriteTo(file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
