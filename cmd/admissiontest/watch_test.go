package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watched is a running "admissiontest run --watch".
type watched struct {
	*testing.T
	command *exec.Cmd
	output  *os.File
	lines   *bufio.Scanner
	seen    []string
}

// watching starts it in a folder. Its standard output and standard error are one.
func watching(t *testing.T, dir string, args ...string) *watched {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server")
	}
	c := command(t, append([]string{"run", "--watch"}, args...)...)
	c.Dir = dir
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = write, write
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() {
		_ = c.Process.Kill() // usually it has ended
		_ = read.Close()
	})
	return &watched{T: t, command: c, output: read, lines: bufio.NewScanner(read)}
}

// until reads lines until one contains a string, and returns them.
func (w *watched) until(text string) string {
	w.Helper()
	if err := w.output.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.Fatal(err)
	}
	begin := len(w.seen)
	for w.lines.Scan() {
		w.seen = append(w.seen, w.lines.Text())
		if strings.Contains(w.lines.Text(), text) {
			return strings.Join(w.seen[begin:], "\n")
		}
	}
	w.Fatalf("it printed no line with %q:\n%s", text, strings.Join(w.seen, "\n"))
	return ""
}

// interrupt ends it, and checks the exit code.
func (w *watched) interrupt(want int) {
	w.Helper()
	if err := w.command.Process.Signal(syscall.SIGINT); err != nil {
		w.Fatal(err)
	}
	for w.lines.Scan() {
		w.seen = append(w.seen, w.lines.Text())
	}
	if code := ended(w.T, w.command, time.Minute); code != want {
		w.Errorf("code %d; want %d:\n%s", code, want, strings.Join(w.seen, "\n"))
	}
}

// reading returns a scenario that reads a ConfigMap of a file, and expects a value in it.
func reading(name, value string) string {
	return fmt.Sprintf(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.%s}
spec:
  level: MUST
  requirement: What was given can be read.
  source: ["https://example.com/reading"]
  givenFiles: [../given.yaml]
  when:
    - get: {apiVersion: v1, kind: ConfigMap, name: given}
      then: {object: {data: {key: %s}}}
`, name, value)
}

func given(value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: given}\ndata: {key: %s}\n", value)
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	save := func(name, content string) { // as editors do
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+"~", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{".git", "scenarios"} { // files are given from within a repository
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	save("given.yaml", given("one"))
	save("scenarios/a.yaml", reading("a", "one"))
	save("scenarios/b.yaml", creating)
	w := watching(t, dir, "scenarios")
	first := w.until("waiting for changes")
	for _, part := range []string{"scenarios  2 pass", "2 scenarios: 2 pass"} {
		if !strings.Contains(first, part) {
			t.Errorf("the first run printed no %q:\n%s", part, first)
		}
	}
	save("scenarios/b.yaml", creating)
	w.until("2 scenarios: 2 pass")
	save("given.yaml", given("two"))
	if got := w.until("2 scenarios: 1 pass, 1 fail"); !strings.Contains(got, `expected     object.data.key: "one"`) {
		t.Errorf("the whole failure is not printed:\n%s", got)
	}
	save("scenarios/a.yaml", reading("a", "two")+"  bad: [\n")
	w.until("scenarios/a.yaml:12:")
	save("scenarios/a.yaml", reading("a", "two"))
	w.until("2 scenarios: 2 pass")
	if err := os.Remove(filepath.Join(dir, "scenarios", "b.yaml")); err != nil {
		t.Fatal(err)
	}
	w.until("1 scenario: 1 pass")
	if err := os.Remove(filepath.Join(dir, "given.yaml")); err != nil {
		t.Fatal(err)
	}
	w.until(`"../given.yaml": cannot be read`)
	save("given.yaml", given("two"))
	w.until("1 scenario: 1 pass")
	for i := range 10 {
		save("scenarios/a.yaml", reading(fmt.Sprintf("a%d", i), "three"))
	}
	ten := w.until("fail  mine.a9  MUST")
	if runs := strings.Count(ten, "1 scenario: "); runs >= 5 {
		t.Errorf("ten saves gave %d runs:\n%s", runs, ten)
	}
	w.until("0 pass, 1 fail")
	w.interrupt(1)
}

const creating = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.b}
spec:
  level: MUST
  requirement: An object can be created.
  source: ["https://example.com/created"]
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: subject}}
`
