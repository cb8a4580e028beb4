package document

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func TestNumberForm(t *testing.T) {
	for raw, want := range map[string]form{
		"0": formInteger, "-0": formInteger, "12": formInteger, "-7": formInteger,
		"1.0": formDecimal, "-0.5": formDecimal, "10.25": formDecimal,
		"1e3": formOdd, "1.5E-3": formOdd, "0x1F": formOdd, "0b1": formOdd, "0o7": formOdd, "0644": formOdd,
		"0899": formOdd, "1_000": formOdd, "+1": formOdd, ".5": formOdd, "5.": formOdd, ".inf": formOdd, "-.Inf": formOdd, ".NaN": formOdd,
		"v1": formText, "1.2.3": formText, "10m": formText, "1Gi": formText, "2024-01-01": formText, "12:30": formText,
		"-": formText, "a": formText, "1.16.0-alpha": formText, "0x": formText, "127.0.0.1": formText, "inf": formText,
		"-1-2": formText, "00000000-0000-0000-0000-000000000000": formText,
	} {
		t.Run(raw, func(t *testing.T) {
			if got := numberForm(raw); got != want {
				t.Errorf("%s has form %d, want %d", raw, got, want)
			}
		})
	}
}
