package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// BenchmarkLoad reads and checks 200 files of the size of those in the catalogue. The
// limit for the whole catalogue is 100 ms on 2 cores.
func BenchmarkLoad(b *testing.B) {
	content, err := os.ReadFile(filepath.Join("testdata", "good", "reinvocation", "again.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	fsys := fstest.MapFS{}
	for i := range 200 {
		name := fmt.Sprintf("reinvocation.number-%d", i)
		text := strings.Replace(string(content), "reinvocation.if-needed.again-after-later-change", name, 1)
		fsys[fmt.Sprintf("area-%d/%s.yaml", i%10, name)] = &fstest.MapFile{Data: []byte(text)}
	}
	b.ReportAllocs()
	for b.Loop() {
		scenarios, err := Load(LoadOptions{FS: fsys})
		if err != nil || len(scenarios) != len(fsys) {
			b.Fatal(len(scenarios), err)
		}
	}
}
