//go:build unix

package load

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/files"
)

// TestHostileFilesEndSoon loads files that are made to be slow for the parser. Each
// is refused within 10 seconds of processor time: other processes do not count.
func TestHostileFilesEndSoon(t *testing.T) {
	limit := 10 * time.Second
	for name, content := range map[string]string{
		"brackets": strings.Repeat("[", files.MaxBytes),
		"closing":  strings.Repeat("]", 19_000),
		"braces":   strings.Repeat("{a: ", files.MaxBytes/4),
		"entries":  strings.Repeat("- ", files.MaxBytes/2),
		"keys":     strings.Repeat("a: ", 9_000),
		"marks":    strings.Repeat("? ", files.MaxBytes/2),
		"tags":     strings.Repeat("!a ", files.MaxBytes/3),
		"anchors":  strings.Repeat("&a ", files.MaxBytes/3),
		"aliases":  "[" + strings.Repeat("*a, ", files.MaxBytes/5) + "]",
		"lines":    strings.Repeat("- a\n", 9_900),
		"headers":  strings.Repeat("---\n", files.MaxBytes/4),
		"comments": strings.Repeat("# a\n", files.MaxBytes/4),
		"text":     "a: " + strings.Repeat("x", files.MaxBytes-3),
		"escapes":  `a: "` + strings.Repeat(`\n`, files.MaxBytes/2-4) + `"`,
		"literal":  "a: |\n" + strings.Repeat("  xxxx\n", files.MaxBytes/7-2),
		"wrapped":  "a:\n" + strings.Repeat("  xxxx\n", files.MaxBytes/7-2),
		"spaces":   strings.Repeat(" ", files.MaxBytes),
		"newlines": strings.Repeat("\n", files.MaxBytes),
		"unknown":  wide(50_000),
		"quotes":   strings.Repeat(`"`, files.MaxBytes),
		"commas":   "[" + strings.Repeat(",", files.MaxBytes-2) + "]",
	} {
		before := processorTime(t)
		_, err := FS(fstest.MapFS{"a.yaml": {Data: []byte(content)}})
		if took := processorTime(t) - before; took > limit {
			t.Errorf("%s: took %s, want less than %s", name, took, limit)
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

// processorTime returns how long this process has used processors.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
