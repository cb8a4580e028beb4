package document

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// growing is a file system whose file is larger when it is opened than Stat says.
type growing struct{ fstest.MapFS }

func (g growing) Stat(string) (fs.FileInfo, error) { return g.MapFS.Stat("small") }

func TestReadRefusesAFileThatGrows(t *testing.T) {
	source := growing{fstest.MapFS{
		"small": {Data: []byte("a")},
		"large": {Data: make([]byte, MaxBytes+1)},
	}}
	large := File{Name: "a.yaml", fsys: source, path: "large"}
	if _, problems := large.Read(); len(problems) != 1 || !strings.Contains(problems[0].Message, "expected a smaller scenario file") {
		t.Errorf("got %v", problems)
	}
}
