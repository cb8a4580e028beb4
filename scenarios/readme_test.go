package scenarios_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// The scenario in README.md can be loaded.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md has no ```yaml block")
	}
	got, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"example/a-later-webhook-sees-the-change.yaml": {Data: []byte(block)}}})
	if err != nil || len(got) != 1 {
		t.Errorf("the scenario of README.md: got %d, %v", len(got), err)
	}
}
