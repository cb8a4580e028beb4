package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocument(t *testing.T) {
	m, err := measure(profileOf(t, "with-argument.txt"), testGroups()[:1], inTestdata)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := m.document(&out, "1.36.3"); err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(out.String(), "\n| part")
	want := ` | statements | not run | with a reason | coverage | without those |
|---|--:|--:|--:|--:|--:|
| the library | 12 | 5 | 1 | 58.3 % | 63.6 % |
| all | 12 | 5 | 1 | 58.3 % | 63.6 % |

The packages for matching are in two parts; the last line counts them once.

## Reasons

Why statements cannot run, according to hack/proof/coverage_reasons.go and hack/proof/unrunnable.yaml:

| statements | reason |
|--:|---|
| 1 | Only tests call the function. |

## Packages

### The library

| package | statements | not run | with a reason | coverage |
|---|--:|--:|--:|--:|
| ` + "`k8s.io/apiserver/lib`" + ` | 12 | 5 | 1 | 58.3 % |

## Functions with statements that did not run

Only statements without a reason count. The functions with the most such statements are first.

| not run | of | function | file |
|--:|--:|---|---|
| 2 | 5 | ` + "`Choose` | `apiserver/lib/lib.go`" + ` |
| 2 | 4 | ` + "`(*box).get` | `apiserver/lib/lib.go`" + ` |
`
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	for range 10 {
		var again strings.Builder
		if err := m.document(&again, "1.36.3"); err != nil || again.String() != out.String() {
			t.Fatal("the document is not always the same")
		}
	}
}

func TestCoverageSummary(t *testing.T) {
	m, err := measure(profileOf(t, "with-argument.txt"), testGroups()[:1], inTestdata)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := m.summary(&out, 1); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"\nThe library ", "\n  apiserver/lib ", "    7 of    12    58.3 %    63.6 %\n", "\nAll ",
		"     2 of    5  apiserver/lib/lib.go:7 Choose\n  … all",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the summary lacks %q:\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "(*box).get") {
		t.Errorf("the summary has more than one function:\n%s", out.String())
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
