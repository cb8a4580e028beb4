package envtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Files can be in folders of the folder of the server, and nowhere else.
func TestFiles(t *testing.T) {
	server := &Server{supervision: &supervision{folder: t.TempDir()}}
	if err := os.Mkdir(server.files(), 0o700); err != nil {
		t.Fatal(err)
	}
	const name = "static/deeper/a.yaml"
	path := filepath.Join(server.files(), filepath.FromSlash(name))
	for _, content := range []string{"first", "second in $(files)"} {
		if err := server.WriteFile(name, content); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if want := server.expand(content); err != nil || string(data) != want {
			t.Errorf("read %q, %v; want %q", data, err, want)
		}
	}
	if err := server.RemoveFile(name); err != nil {
		t.Error(err)
	}
	if err := server.RemoveFile(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove twice: %v; want that it does not exist", err)
	}
	for _, outside := range []string{"", "../a.yaml", "static/../../a.yaml", "/a.yaml"} {
		t.Run(outside, func(t *testing.T) {
			if server.WriteFile(outside, "content") == nil || server.RemoveFile(outside) == nil {
				t.Errorf("%q: no error; want one, because it is not below the folder", outside)
			}
		})
	}
}
