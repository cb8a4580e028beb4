package document

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
)

// everyFile calls do with each YAML and JSON file in the testdata of package scenario.
func everyFile(t testing.TB, do func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", "..", "testdata"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".golden") {
			return err
		}
		content, err := os.ReadFile(name) //nolint:gosec // a file of this repository
		if err != nil {
			return err
		}
		do(name, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPositions compares the position of every field and text with the text at that
// position of the file.
func TestPositions(t *testing.T) {
	count := 0
	everyFile(t, func(name string, content []byte) {
		text := strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")
		if strings.HasSuffix(name, ".json") {
			text = strings.ReplaceAll(text, "\t", " ")
		}
		documents, _ := Parse(name, content)
		for _, root := range documents {
			count += positions(t, name, strings.Split(text, "\n"), root)
		}
	})
	if count < 1000 {
		t.Errorf("compared %d positions, want at least 1000", count)
	}
}

func positions(t *testing.T, name string, lines []string, n *Node) int {
	t.Helper()
	count := 1
	stands := func(line, column int, text string) {
		t.Helper()
		if line < 1 || line > len(lines) {
			t.Errorf("%s:%d:%d: no such line", name, line, column)
			return
		}
		runes := []rune(lines[line-1])
		if column < 1 || column > len(runes)+1 {
			t.Errorf("%s:%d:%d: no such column, the line has %d", name, line, column, len(runes))
			return
		}
		rest := string(runes[column-1:])
		if !strings.HasPrefix(strings.TrimLeft(rest, `"'`), text) && !strings.ContainsAny(rest[:min(1, len(rest))], `|>"'`) {
			t.Errorf("%s:%d:%d: got %q there, want %q", name, line, column, rest, text)
		}
	}
	switch n.Kind {
	case KindMapping, KindList, KindNull:
	default:
		word, _, _ := strings.Cut(n.Raw, " ")
		word, _, _ = strings.Cut(word, "\n")
		stands(n.Line, n.Column, word)
	}
	for i := range n.Fields {
		stands(n.Fields[i].Key.Line, n.Fields[i].Key.Column, n.Fields[i].Name)
		count += positions(t, name, lines, n.Fields[i].Value)
	}
	for _, item := range n.Items {
		count += positions(t, name, lines, item)
	}
	return count
}

func TestNumbers(t *testing.T) {
	const refused Kind = "refused"
	for want, all := range map[Kind][]string{
		KindInteger: {"0", "-0", "12", "-7"},
		KindNumber:  {"1.0", "-0.5", "10.25"},
		KindText: {
			"v1", "1.2.3", "10m", "1Gi", "2024-01-01", "12:30", "-", "a", "1.16.0-alpha", "0x", "127.0.0.1", "inf", "-1-2",
			"00000000-0000-0000-0000-000000000000",
		},
		refused: { // odd: a number in some version of YAML, but not in JSON
			"1e3", "1.5E-3", "0x1F", "0b1", "0o7", "0644", "0899", "1_000", "+1", ".5", "5.", ".inf", "-.Inf", ".NaN",
		},
	} {
		for _, raw := range all {
			b := &builder{source: &source{}}
			got := b.scalar(&yaml.Node{Value: raw}).Kind
			if len(b.problems) > 0 {
				got = refused
			}
			if got != want {
				t.Errorf("%s is %s, want %s", raw, got, want)
			}
		}
	}
}
