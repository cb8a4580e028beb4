package execution

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// withFiles is a Target whose files can be changed, but not the file "locked".
type withFiles struct {
	targettest.Target
	log *[]string
}

func (t withFiles) Optional() target.Optional {
	note := func(path, what string) error {
		if path == "locked" {
			return errors.New("it is locked")
		}
		*t.log = append(*t.log, what)
		return nil
	}
	return target.Optional{
		WriteFile:  func(path, content string) error { return note(path, fmt.Sprintf("write %s: %s", path, content)) },
		RemoveFile: func(path string) error { return note(path, "remove "+path) },
	}
}

func TestChangeFiles(t *testing.T) {
	var log []string
	c := &Case{target: withFiles{log: &log}}
	if err := c.changeFiles(scenario.Files{Write: map[string]string{"b": "2", "a": "1"}, Remove: []string{"c"}}); err != nil {
		t.Error(err)
	}
	if want := []string{"remove c", "write a: 1", "write b: 2"}; !slices.Equal(log, want) {
		t.Errorf("got %q; want %q", log, want)
	}
	for name, files := range map[string]scenario.Files{"write": {Write: map[string]string{"locked": ""}}, "remove": {Remove: []string{"locked"}}} {
		t.Run(name, func(t *testing.T) {
			if c.changeFiles(files) == nil {
				t.Errorf("%v: got no error", files)
			}
		})
	}
	if (&Case{target: targettest.Target{}}).changeFiles(scenario.Files{Remove: []string{"a"}}) == nil {
		t.Error("a target without files: got no error")
	}
}
