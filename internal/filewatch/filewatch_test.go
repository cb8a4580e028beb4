package filewatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
		"ten in a second":         {slices.Repeat([]time.Duration{100 * time.Millisecond}, 10), 2},
		"ten at once":             {slices.Repeat([]time.Duration{time.Millisecond}, 10), 1},
		"two with time to spare":  {[]time.Duration{0, far}, 2},
		"without end, for 9.99 s": {slices.Repeat([]time.Duration{10 * time.Millisecond}, 999), 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatcher()
				w.set = Set{Files: []string{"/a"}}
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for _, pause := range test.pauses {
						time.Sleep(pause) //nolint:forbidigo // the time of synctest
						w.note("/a")
					}
					time.Sleep(far) //nolint:forbidigo // the time of synctest
					cancel()
				}()
				answers := 0
				for {
					changed, err := w.Next(ctx)
					if err != nil {
						break
					}
					if !slices.Equal(changed, []string{"/a"}) {
						t.Errorf("Next returns %v; want /a", changed)
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

// A change between two calls of Next is not lost.
func TestChangeBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		w.set = Set{Files: []string{"/a", "/b"}}
		w.note("/a")
		if changed, err := w.Next(t.Context()); err != nil || !slices.Equal(changed, []string{"/a"}) {
			t.Errorf("Next returns %v, %v", changed, err)
		}
		w.note("/b", "/c")
		if changed, err := w.Next(t.Context()); err != nil || !slices.Equal(changed, []string{"/b"}) {
			t.Errorf("Next returns %v, %v", changed, err)
		}
	})
}

// What editors, git and compilers do with files is noticed, in a folder and for a file outside of it.
func TestWatch(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil { //nolint:gosec // a folder of a user
			t.Fatal(err)
		}
		if err := os.WriteFile(in(name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(in(from), in(to)); err != nil {
			t.Fatal(err)
		}
	}
	write("scenarios/a.yaml")
	write("scenarios/sub/b.yaml")
	write("config/webhook.yaml")
	write("real/linked.yaml")
	if err := os.Symlink(in("real/linked.yaml"), in("linked.yaml")); err != nil {
		t.Fatal(err)
	}
	set := Set{
		Folders: []Folder{{in("scenarios"), []string{".yaml"}}},
		Files:   []string{in("config/webhook.yaml"), in("linked.yaml"), in("later/on.yaml")},
		Except:  []string{in("scenarios/out")},
	}
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"write", func() { write("scenarios/a.yaml") }, "scenarios/a.yaml"},
		{"rename to", func() { write("scenarios/.swap"); move("scenarios/.swap", "scenarios/a.yaml") }, "scenarios/a.yaml"},
		{"in a subfolder", func() { write("scenarios/sub/b.yaml") }, "scenarios/sub/b.yaml"},
		{"a new folder", func() { write("scenarios/new/c.yaml") }, "scenarios/new"},
		{"in the new folder", func() { write("scenarios/new/d.yaml") }, "scenarios/new/d.yaml"},
		{"a single file", func() { write("config/webhook.yaml") }, "config/webhook.yaml"},
		{"the target of a link", func() { write("real/linked.yaml") }, "real/linked.yaml"},
		{"a file that did not exist", func() { write("later/on.yaml") }, "later"},
		{"a file whose folder did not exist", func() { write("later/on.yaml") }, "later/on.yaml"},
		{"a folder vanishes", func() { move("scenarios/new", "gone") }, "scenarios/new"},
		{"a file vanishes", func() { move("config/webhook.yaml", "gone.yaml") }, "config/webhook.yaml"},
		{"it comes back", func() { move("gone.yaml", "config/webhook.yaml") }, "config/webhook.yaml"},
		{"the whole folder vanishes", func() { move("scenarios", "elsewhere") }, "scenarios"},
		{"it comes back", func() { move("elsewhere", "scenarios") }, "scenarios"},
	} {
		if err := w.Watch(set); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(in("scenarios")); err == nil { // the rest changes too
			write("config/other.yaml")
			write("scenarios/sub/notes.txt")
			write("scenarios/sub/.b.yaml")
			write("scenarios/sub/b.yaml~")
			write("scenarios/out/report.yaml")
		}
		step.do()
		var changed []string
		for !slices.Contains(changed, in(step.want)) {
			t.Logf("%s: waiting for %s", step.name, step.want)
			more, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			changed = append(changed, more...)
		}
		for _, never := range []string{"config/other.yaml", "scenarios/sub/notes.txt", "scenarios/sub/.b.yaml", "scenarios/sub/b.yaml~", "scenarios/out/report.yaml"} {
			if slices.Contains(changed, in(never)) {
				t.Errorf("%s: Next returns %s", step.name, never)
			}
		}
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	because := errors.New("because")
	cancel(because)
	for err == nil {
		_, err = w.Next(cancelled)
	}
	if !errors.Is(err, because) {
		t.Errorf("Next: %v; want %v", err, because)
	}
}
