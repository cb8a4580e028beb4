package envtest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProfileFileInAFolder(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder, "static/deeper/a.yaml", "content"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "static", "deeper", "a.yaml"))
	if err != nil || string(data) != "content" {
		t.Errorf("read %q, %v; want the content", data, err)
	}
}

func TestProfileFileStaysInTheFolder(t *testing.T) {
	for _, name := range []string{"", "../a.yaml", "static/../../a.yaml", "/a.yaml"} {
		if err := write(filepath.Join(t.TempDir(), "files"), name, "content"); err == nil {
			t.Errorf("write %q: no error; want one, because it is not below the folder", name)
		}
	}
}
