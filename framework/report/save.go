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

// SaveDir writes report.json and junit.xml into a folder, which it makes where it
// is missing. Each file is replaced as a whole: a reader, or a run that is killed,
// never leaves half of one. The error names the files that could not be written.
func SaveDir(dir string, r Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save report: make folder: %w", err)
	}
	return errors.Join(
		replaceFile(filepath.Join(dir, JSONFile), func(w io.Writer) error { return WriteJSON(w, r) }),
		replaceFile(filepath.Join(dir, JUnitFile), func(w io.Writer) error { return WriteJUnit(w, r) }),
	)
}

// replaceFile writes beside the file and then takes its place.
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
