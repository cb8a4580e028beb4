package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Bursts of changes give few answers, and no change is lost.
func TestBursts(t *testing.T) {
	const far = 10 * time.Second
	for name, test := range map[string]struct {
		pauses []time.Duration // before each change
		want   int             // answers
	}{
		"one":                     {[]time.Duration{0}, 1},
		"an editor":               {[]time.Duration{0, time.Millisecond, 5 * time.Millisecond}, 1},
		"ten in a second":         {slices.Repeat([]time.Duration{90 * time.Millisecond}, 10), 1},
		"ten at once":             {slices.Repeat([]time.Duration{time.Millisecond}, 10), 1},
		"two with time to spare":  {[]time.Duration{0, far}, 2},
		"without end, for 9.99 s": {slices.Repeat([]time.Duration{10 * time.Millisecond}, 999), 4},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a")
			synctest.Test(t, func(t *testing.T) {
				var w watchedFiles
				w.watch(fileSet{files: []string{file}})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for i, pause := range test.pauses {
						time.Sleep(pause) //nolint:forbidigo // the time of synctest
						// Another size: all of this takes less time than a file system's clock can tell apart.
						if err := os.WriteFile(file, make([]byte, i), 0o600); err != nil {
							t.Error(err)
						}
					}
					time.Sleep(far) //nolint:forbidigo // the time of synctest
					cancel()
				}()
				answers := 0
				for {
					changed, err := w.next(ctx)
					if err != nil {
						break
					}
					if !slices.Equal(changed, []string{file}) {
						t.Errorf("next returns %v; want %s", changed, file)
					}
					answers++
				}
				if answers != test.want {
					t.Errorf("%d answers; want %d", answers, test.want)
				}
			})
		})
	}
}

// What editors, git and compilers do with files is noticed, in a folder and for a file outside of it, also between
// two calls.
func TestWatchedFiles(t *testing.T) {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	content := ""
	write := func(name string) {
		t.Helper()
		content += "x" // so that the size differs
		writeFile(t, in(name), content, 0o600)
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(in(from), in(to)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"scenarios/a.yaml", "scenarios/sub/b.yaml", "config/webhook.yaml", "real/linked.yaml", "elsewhere/c.yaml"} {
		write(name)
	}
	for link, to := range map[string]string{"linked.yaml": "real/linked.yaml", "folder": "elsewhere"} {
		if err := os.Symlink(in(to), in(link)); err != nil {
			t.Fatal(err)
		}
	}
	set := fileSet{
		folders: []watchedFolder{{in("scenarios"), []string{".yaml"}}, {in("folder"), []string{".yaml"}}},
		files:   []string{in("config/webhook.yaml"), in("linked.yaml"), in("later/on.yaml")},
		except:  []string{in("scenarios/out")},
	}
	var w watchedFiles
	w.watch(set)
	for _, step := range []struct {
		name, want string
		do         func()
	}{
		{"write", "scenarios/a.yaml", func() { write("scenarios/a.yaml") }},
		{"rename to", "scenarios/a.yaml", func() { write("scenarios/.swap"); move("scenarios/.swap", "scenarios/a.yaml") }},
		{"in a subfolder", "scenarios/sub/b.yaml", func() { write("scenarios/sub/b.yaml") }},
		{"a new folder", "scenarios/new/c.yaml", func() { write("scenarios/new/c.yaml") }},
		{"a single file", "config/webhook.yaml", func() { write("config/webhook.yaml") }},
		{"the target of a link", "linked.yaml", func() { write("real/linked.yaml") }},
		{"in the target of a link", "folder/c.yaml", func() { write("elsewhere/c.yaml") }},
		{"a file whose folder did not exist", "later/on.yaml", func() { write("later/on.yaml") }},
		{"a folder vanishes", "scenarios/new/c.yaml", func() { move("scenarios/new", "gone") }},
		{"a file vanishes", "config/webhook.yaml", func() { move("config/webhook.yaml", "gone.yaml") }},
		{"it comes back", "config/webhook.yaml", func() { move("gone.yaml", "config/webhook.yaml") }},
		{"the whole folder vanishes", "scenarios/a.yaml scenarios/sub/b.yaml", func() { move("scenarios", "moved") }},
		{"it comes back", "scenarios/a.yaml scenarios/sub/b.yaml", func() { move("moved", "scenarios") }},
		{"between two calls", "scenarios/a.yaml scenarios/d.yaml", func() { write("scenarios/a.yaml"); write("scenarios/d.yaml"); w.watch(set) }},
		{"another set", "scenarios/a.yaml", func() {
			write("scenarios/a.yaml")
			w.watch(fileSet{folders: set.folders, files: []string{in("other.yaml")}})
		}},
	} {
		if _, err := os.Stat(in("scenarios")); err == nil { // the rest changes too
			for _, name := range []string{"config/other.yaml", "scenarios/sub/notes.txt", "scenarios/sub/.b.yaml", "scenarios/.git/b.yaml", "scenarios/sub/b.yaml~", "scenarios/out/report.yaml"} {
				write(name)
			}
		}
		step.do()
		changed, err := w.next(t.Context())
		for i, path := range changed {
			changed[i], _ = filepath.Rel(root, path)
		}
		if got := filepath.ToSlash(strings.Join(changed, " ")); got != step.want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", step.name, got, err, step.want)
		}
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	because := errors.New("because")
	cancel(because)
	if _, err := w.next(cancelled); !errors.Is(err, because) {
		t.Errorf("got %v; want %v", err, because)
	}
}
