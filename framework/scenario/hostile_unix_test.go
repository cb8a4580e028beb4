//go:build unix

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// TestHostileFilesEndSoon loads files that are made to be slow for the parser. Each is refused soon, not after hours: the
// slowest needs 2 seconds of processor time and 300 MB for the tokens of the YAML parser, and 11 on a busy CI machine. Other
// processes do not count.
func TestHostileFilesEndSoon(t *testing.T) {
	limit := time.Minute
	for name, content := range map[string]string{
		"brackets": strings.Repeat("[", document.MaxBytes),
		"closing":  strings.Repeat("]", 19_000),
		"braces":   strings.Repeat("{a: ", document.MaxBytes/4),
		"entries":  strings.Repeat("- ", document.MaxBytes/2),
		"keys":     strings.Repeat("a: ", 9_000),
		"marks":    strings.Repeat("? ", document.MaxBytes/2),
		"tags":     strings.Repeat("!a ", document.MaxBytes/3),
		"anchors":  strings.Repeat("&a ", document.MaxBytes/3),
		"aliases":  "[" + strings.Repeat("*a, ", document.MaxBytes/5) + "]",
		"lines":    strings.Repeat("- a\n", 9_900),
		"headers":  strings.Repeat("---\n", document.MaxBytes/4),
		"comments": strings.Repeat("# a\n", document.MaxBytes/4),
		"text":     "a: " + strings.Repeat("x", document.MaxBytes-3),
		"escapes":  `a: "` + strings.Repeat(`\n`, document.MaxBytes/2-4) + `"`,
		"literal":  "a: |\n" + strings.Repeat("  xxxx\n", document.MaxBytes/7-2),
		"wrapped":  "a:\n" + strings.Repeat("  xxxx\n", document.MaxBytes/7-2),
		"spaces":   strings.Repeat(" ", document.MaxBytes),
		"newlines": strings.Repeat("\n", document.MaxBytes),
		"unknown":  wide(50_000),
		"quotes":   strings.Repeat(`"`, document.MaxBytes),
		"commas":   "[" + strings.Repeat(",", document.MaxBytes-2) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			before := processorTime(t)
			_, err := Load(LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(content)}}})
			if took := processorTime(t) - before; took > limit {
				t.Errorf("took %s, want less than %s", took, limit)
			} else {
				t.Logf("%s", took)
			}
			if err == nil {
				t.Error("was loaded")
			}
		})
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

// A link in a folder leads to a file in its tree. A given path can be a link.
func TestLinksOutOfTheTree(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "others", "secret.yaml"), named("others.secret"))
	write(t, filepath.Join(dir, "others", "shared", "a.yaml"), named("shared.a"))
	write(t, filepath.Join(dir, "repository", ".git", "config"), "")
	write(t, filepath.Join(dir, "repository", "common", "b.yaml"), named("common.b"))
	mine := filepath.Join(dir, "repository", "mine")
	write(t, filepath.Join(mine, "c.yaml"), named("mine.c"))
	for target, want := range map[string]string{
		"/":                        "a symbolic link out of ",
		"../..":                    "a symbolic link",
		"..":                       "a symbolic link to a folder",
		"../../others":             "a symbolic link out of ",
		dir + "/others":            "a symbolic link out of ",
		"../../others/secret.yaml": "a symbolic link out of ",
		"../common":                "a symbolic link to a folder",
		"../common/b.yaml":         "",
	} {
		t.Run(strings.TrimPrefix(target, dir), func(t *testing.T) {
			name := filepath.Join(mine, "link.yaml")
			link(t, target, name)
			got, err := Load(LoadOptions{}, mine)
			if want == "" && (err != nil || len(got) != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || len(Errors(err)) != 1) {
				t.Errorf("link to %s: got %d scenarios, %v; want %q", target, len(got), err, want)
			}
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		})
	}
	given := filepath.Join(mine, "e.yaml")
	link(t, dir+"/others/shared", given)
	link(t, "a.yaml", dir+"/others/shared/link.yaml")
	if got, err := Load(LoadOptions{}, given); err != nil || len(got) != 1 {
		t.Errorf("given link: got %d scenarios, %v", len(got), err)
	}
}

// A file of very many documents is refused before it is parsed, which took 10 seconds, and of manifests 20.
func TestManyDocuments(t *testing.T) {
	for want, content := range map[string]string{
		"a.yaml:20000:1": strings.Repeat("a:\n---\n", 140_000),
		"b.txt:20001:1":  strings.Replace(withGivenFiles, "FILE", "b.txt", 1),
	} {
		_, err := Load(LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(content)}, "b.txt": {Data: []byte(strings.Repeat("---\n{}\n", 1_000_000))}}}, "a.yaml")
		if want += ": a file of more than 10000 documents; split it, or check the path"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.500v; want %s", err, want)
		}
	}
}

// processorTime returns how long this process has used processors.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
