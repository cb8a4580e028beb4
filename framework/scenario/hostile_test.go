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

// everyFile calls do with each scenario file in testdata.
func everyFile(t testing.TB, do func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isScenarioFile(entry.Name()) {
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

// TestHostileFilesEndSoon loads files that are made to be slow for the parser. Each
// is refused within 10 seconds.
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

// FuzzLoad loads any content twice. Both results are the same: scenarios, or errors
// with positions in the file.
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
		if err == nil && len(scenarios) == 0 && !strings.Contains(string(content), kindUncovered) {
			t.Error("neither a scenario nor an error")
		}
		lines := strings.Count(string(content), "\n") + 1
		for _, one := range Errors(err) {
			if one.File != name || one.Line < 1 || one.Line > lines || one.Column < 1 || one.Message == "" {
				t.Errorf("error without a position: %+v", one)
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
