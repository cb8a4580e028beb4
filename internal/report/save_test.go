package report_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/report"
)

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestSaveDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	for range 2 { // the second time over the files of the first
		if err := report.SaveDir(dir, everything()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{report.JUnitFile, report.HTMLFile, report.JSONFile}, list(t, dir)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	var want bytes.Buffer
	if err := report.WriteJSON(&want, everything()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if err != nil || !bytes.Equal(want.Bytes(), got) {
		t.Errorf("got %s, %v, want what WriteJSON writes", got, err)
	}
	for name, mode := range map[string]os.FileMode{report.JUnitFile: 0o600, report.HTMLFile: 0o600, report.JSONFile: 0o600, ".": 0o700, "..": 0o700} {
		t.Run(name, func(t *testing.T) {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("got %v, %v, want mode %o", info, err, mode)
			}
		})
	}
}

func TestSaveDirLeavesTheOldFileWhereItFails(t *testing.T) {
	dir := t.TempDir()
	if err := report.SaveDir(dir, everything()); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	broken := everything()
	broken.Timing.Total = math.NaN() // JSON has no such number
	err = report.SaveDir(dir, broken)
	if err == nil || !strings.Contains(err.Error(), report.JSONFile) || strings.Contains(err.Error(), report.JUnitFile) {
		t.Errorf("got %v, want an error that names %s alone", err, report.JSONFile)
	}
	if now, err := os.ReadFile(filepath.Join(dir, report.JSONFile)); err != nil || !bytes.Equal(old, now) {
		t.Errorf("the old file is not as it was: %v", err)
	}
	if diff := cmp.Diff([]string{report.JUnitFile, report.HTMLFile, report.JSONFile}, list(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestSaveDirSaysWhatIsInTheWay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := report.SaveDir(file, everything()); err == nil || !strings.HasPrefix(err.Error(), "save report: create directory: ") {
		t.Errorf("got %v, want an error about the directory", err)
	}
	inTheWay := filepath.Join(dir, report.JSONFile)
	if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := report.SaveDir(dir, everything()); err == nil || !strings.Contains(err.Error(), inTheWay) {
		t.Errorf("got %v, want an error about %s", err, inTheWay)
	}
	if diff := cmp.Diff([]string{"file", report.JUnitFile, report.HTMLFile, report.JSONFile}, list(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
