package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files that SaveDir writes.
const (
	JSONFile  = "report.json"
	JUnitFile = "junit.xml"
)

// SaveDir writes report.json and junit.xml into a directory, which it creates if it does
// not exist. Each file is replaced at once: it is never incomplete. The error names the
// files that could not be written.
func SaveDir(dir string, r Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save report: create directory: %w", err)
	}
	return errors.Join(
		replaceFile(filepath.Join(dir, JSONFile), func(w io.Writer) error { return WriteJSON(w, r) }),
		replaceFile(filepath.Join(dir, JUnitFile), func(w io.Writer) error { return WriteJUnit(w, r) }),
	)
}

// replaceFile writes a temporary file and renames it.
func replaceFile(name string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("save report %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("save report %s: %w", name, err), os.Remove(file.Name()))
		}
	}()
	err = write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
