package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// everyFile calls do with each file under testdata that is to be read.
func everyFile(t testing.TB, do func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isScenarioFile(entry.Name()) {
			return err
		}
		content, err := os.ReadFile(name) //nolint:gosec // a file of ours
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

// TestPositions holds the place of every field and text that was read against
// what stands there in the file.
func TestPositions(t *testing.T) {
	count := 0
	everyFile(t, func(name string, content []byte) {
		documents, _ := parseFile(name, content)
		text := strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")
		if strings.HasSuffix(name, ".json") {
			text = fromJSON(text)
		}
		for _, root := range documents {
			count += positions(t, name, strings.Split(text, "\n"), root)
		}
	})
	if count < 1000 {
		t.Errorf("held %d places against their files, want more", count)
	}
}

func positions(t *testing.T, name string, lines []string, n *node) int {
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
	switch n.kind {
	case kindMapping, kindList, kindNull:
	default:
		word, _, _ := strings.Cut(n.raw, " ")
		word, _, _ = strings.Cut(word, "\n")
		stands(n.line, n.column, word)
	}
	for i := range n.fields {
		stands(n.fields[i].line, n.fields[i].column, n.fields[i].name)
		count += positions(t, name, lines, n.fields[i].value)
	}
	for _, item := range n.items {
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
		if got := numberForm(raw); got != want {
			t.Errorf("%s has form %d, want %d", raw, got, want)
		}
	}
}

// TestHostileFilesEndSoon loads files made to be slow for the parser: each is
// either read or refused well before anybody would think of a hang.
func TestHostileFilesEndSoon(t *testing.T) {
	deadline := 10 * time.Second
	for name, content := range map[string]string{
		"brackets": strings.Repeat("[", maxBytes),
		"closing":  strings.Repeat("]", 19_000),
		"braces":   strings.Repeat("{a: ", maxBytes/4),
		"entries":  strings.Repeat("- ", maxBytes/2),
		"keys":     strings.Repeat("a: ", 9_000),
		"marks":    strings.Repeat("? ", maxBytes/2),
		"tags":     strings.Repeat("!a ", maxBytes/3),
		"anchors":  strings.Repeat("&a ", maxBytes/3),
		"aliases":  "[" + strings.Repeat("*a, ", maxBytes/5) + "]",
		"lines":    strings.Repeat("- a\n", 9_900),
		"headers":  strings.Repeat("---\n", maxBytes/4),
		"comments": strings.Repeat("# a\n", maxBytes/4),
		"text":     "a: " + strings.Repeat("x", maxBytes-3),
		"escapes":  `a: "` + strings.Repeat(`\n`, maxBytes/2-4) + `"`,
		"literal":  "a: |\n" + strings.Repeat("  xxxx\n", maxBytes/7-2),
		"wrapped":  "a:\n" + strings.Repeat("  xxxx\n", maxBytes/7-2),
		"spaces":   strings.Repeat(" ", maxBytes),
		"newlines": strings.Repeat("\n", maxBytes),
		"unknown":  wide(50_000),
		"quotes":   strings.Repeat(`"`, maxBytes),
		"commas":   "[" + strings.Repeat(",", maxBytes-2) + "]",
	} {
		start := time.Now()
		_, err := Load(fstest.MapFS{"a.yaml": {Data: []byte(content)}})
		if took := time.Since(start); took > deadline {
			t.Errorf("%s: took %s, want less than %s", name, took, deadline)
		} else {
			t.Logf("%s: %s", name, took)
		}
		if err == nil {
			t.Errorf("%s: was loaded", name)
		}
	}
}

// wide returns a document with many fields.
func wide(fields int) string {
	var out strings.Builder
	for i := range fields {
		fmt.Fprintf(&out, "knd%d: 1\n", i)
	}
	return out.String()
}

// FuzzLoad loads any content twice: it ends, says the same both times and gives
// either scenarios or errors with places in the file.
func FuzzLoad(f *testing.F) {
	everyFile(f, func(name string, content []byte) {
		if len(content) < 1<<14 {
			f.Add(content, strings.HasSuffix(name, ".json"))
		}
	})
	f.Fuzz(func(t *testing.T, content []byte, isJSON bool) {
		name := "a/a.yaml"
		if isJSON {
			name = "a/a.json"
		}
		fsys := fstest.MapFS{name: {Data: content}}
		scenarios, err := Load(fsys)
		if err == nil && len(scenarios) == 0 && !strings.Contains(string(content), KindUncovered) {
			t.Error("neither a scenario nor an error")
		}
		lines := strings.Count(string(content), "\n") + 1
		for _, one := range Errors(err) {
			if one.File != name || one.Line < 1 || one.Line > lines || one.Column < 1 || one.Message == "" {
				t.Errorf("error without a place: %+v", one)
			}
			if strings.Contains(one.Message, "parser failed") {
				t.Logf("%s", one)
			}
		}
		_, again := Load(fsys)
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Errorf("first\n%v\nthen\n%v", err, again)
		}
	})
}
