package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/scenarios.md lists the flags that a scenario can set.
func TestServerFlagsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range serverFlags() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/scenarios.md does not list the flag %s", name)
		}
	}
}
