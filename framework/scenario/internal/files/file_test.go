package files

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestReadRefusesAFileThatGrows(t *testing.T) {
	large := File{Name: "a.yaml"}
	source := fstest.MapFS{
		"small": {Data: []byte("a")},
		"large": {Data: make([]byte, MaxBytes+1)},
	}
	large.stat = func() (os.FileInfo, error) { return source.Stat("small") }
	large.open = func() (fs.File, error) { return source.Open("large") }
	if _, problem := large.Read(); problem == nil || !strings.Contains(problem.Message, "expected a scenario file of at most") {
		t.Errorf("got %v", problem)
	}
}
