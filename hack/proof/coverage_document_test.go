package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocument(t *testing.T) {
	m := measure(profileOf(t, "with-argument.txt"), testGroups()[:1])
	var out strings.Builder
	if err := m.document(&out, "1.36.3"); err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(out.String(), "\n| part")
	want := ` | statements | not run | coverage |
|---|--:|--:|--:|
| the library | 12 | 5 | 58.3 % |
| all | 12 | 5 | 58.3 % |

The packages for matching are in two parts; the last line counts them once.

## The library

| package | statements | not run | coverage |
|---|--:|--:|--:|
| ` + "`k8s.io/apiserver/lib`" + ` | 12 | 5 | 58.3 % |
`
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

// The document in the repository is of this program: of these parts, in this order.
func TestDocumentInRepository(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n| part")
	for _, g := range groups() {
		var found bool
		if _, rest, found = strings.Cut(rest, "\n| "+g.name+" | "); !found {
			t.Errorf("docs/coverage.md lacks %s at its place: run \"make coverage\"", g.name)
		}
	}
}
