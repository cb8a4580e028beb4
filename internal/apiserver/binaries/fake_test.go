//go:build unix

package binaries

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is the limit of each wait of a test.
const patience = 30 * time.Second

// script writes an executable shell script.
func script(t testing.TB, path, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
}

// programsIn writes programs that print a version.
func programsIn(t testing.TB, dir, version string) string {
	t.Helper()
	script(t, filepath.Join(dir, apiserverName), "echo Kubernetes v"+version+"\n")
	script(t, filepath.Join(dir, etcdName), "echo etcd Version: "+EtcdVersion+"\n")
	return dir
}

// cachedIn writes an entry of a cache.
func cachedIn(t testing.TB, cache string, v version) string {
	t.Helper()
	dir := programsIn(t, filepath.Join(cache, "k8s", v.dirName()), string(v))
	if err := seal(dir, manifest{Version: string(v)}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// downloadedIn writes an entry of the downloads of a cache.
func downloadedIn(t testing.TB, cache string, v version) string {
	t.Helper()
	dir := programsIn(t, filepath.Join(cache, "downloaded", v.dirName()), string(v))
	if err := seal(dir, manifest{Version: string(v), Archive: "1234"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fakeGo is a `go` with steps that are shell commands.
type fakeGo struct {
	download string // go mod download; the zero value finds the module
	versions string // go list -m -versions
	list     string // go list -deps
	build    string // go build; "$out" is the file to write
	env      string // go env
}

// write writes the program and returns its path. In the same directory, the file calls gets
// a line for each run, and PROGRAM.mod is the go.mod with which PROGRAM was built.
func (f fakeGo) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	mod := filepath.Join(dir, "their.mod")
	original := "module k8s.io/kubernetes\n\ngo 1.26.0\n\ngodebug default=go1.26\n\n" +
		"require (\n\tgithub.com/x/y v1.2.3\n\tk8s.io/api v0.0.0\n)\n\nexclude github.com/x/y v1.3.0\n\n" +
		"replace k8s.io/api => ./staging/src/k8s.io/api\n"
	if err := os.WriteFile(mod, []byte(original), 0o644); err != nil {
		t.Fatal(err)
	}
	or := func(given, otherwise string) string {
		if given != "" {
			return given
		}
		return otherwise
	}
	path := filepath.Join(dir, "go")
	script(t, path, fmt.Sprintf(`here=%q
echo "$*" >>"$here/calls"
env >"$here/env"
case "$*" in
"mod download "*) %s ;;
"list -m "*) %s ;;
"list -deps "*) %s ;;
"env "*) %s ;;
"build "*)
  while [ "$1" != -o ]; do
    [ "$1" = -ldflags ] && flags=$2
    shift
  done
  out=$2
  cp go.mod "$here/$(basename "$out").mod"
  version=$(echo "$flags" | sed -n 's/.*gitVersion=v\([^ ]*\).*/\1/p')
  %s ;;
esac
`, dir,
		or(f.download, fmt.Sprintf("echo '{\"GoMod\": \"%s\"}'", mod)),
		or(f.versions, "echo v1.37.1 v1.37.2"),
		or(f.list, "echo a; echo b"),
		or(f.env, "echo"),
		or(f.build, makeProgram)))
	return path
}

// makeProgram is the step build of a fake `go` that works.
const makeProgram = `
  echo some/package >&2
  case "$out" in
  *etcd) printf '#!/bin/sh\necho etcd Version: 3.6.8\n' >"$out" ;;
  *) printf '#!/bin/sh\necho Kubernetes v%s\n' "$version" >"$out" ;;
  esac
  chmod +x "$out"`

// builds counts the programs that a fake `go` built.
func builds(t testing.TB, goCommand string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(goCommand), "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count("\n"+string(text), "\nbuild ")
}

// progress records lines. A test can wait for one.
type progress struct {
	mu    sync.Mutex
	lines []string
	added chan struct{}
}

func newProgress() *progress { return &progress{added: make(chan struct{}, 1)} }

func (p *progress) add(line string) {
	p.mu.Lock()
	p.lines = append(p.lines, line)
	p.mu.Unlock()
	select {
	case p.added <- struct{}{}:
	default: // the one who waits has not looked yet
	}
}

func (p *progress) has(part string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(strings.Join(p.lines, "\n"), part)
}

func (p *progress) want(t testing.TB, part string) {
	t.Helper()
	if !p.has(part) {
		t.Errorf("progress %q lacks %q", p.lines, part)
	}
}

func (p *progress) await(t testing.TB, part string) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !p.has(part) {
		select {
		case <-p.added:
		case <-limit.Done():
			t.Fatalf("no progress with %q; had %q", part, p.lines)
		}
	}
}

// hanging is a shell step that reports its start and then never ends.
type hanging struct {
	fifo string
	file *os.File
}

func newHanging(t testing.TB) *hanging {
	t.Helper()
	h := &hanging{fifo: filepath.Join(t.TempDir(), "alive")}
	if err := syscall.Mkfifo(h.fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// step holds the pipe open in this shell and a child of it.
func (h *hanging) step() string {
	return fmt.Sprintf("exec 9>%q; echo started >&9; sleep 300 & wait", h.fifo)
}

// childless is step without the child.
func (h *hanging) childless() string {
	return fmt.Sprintf("exec 9>%q; echo started >&9; exec sleep 300", h.fifo)
}

// started waits until the step runs.
func (h *hanging) started(t testing.TB) {
	t.Helper()
	within(t, "the step to start", func() error {
		file, err := os.Open(h.fifo)
		if err != nil {
			return err
		}
		h.file = file
		_, err = bufio.NewReader(file).ReadString('\n')
		return err
	})
}

// gone waits until no process of the step is left.
func (h *hanging) gone(t testing.TB) {
	t.Helper()
	within(t, "every process of the step to end", func() error {
		_, err := io.ReadAll(h.file)
		return err
	})
	h.file.Close()
}

// within fails the test if do does not return within patience.
func within(t testing.TB, what string, do func() error) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("wait for %s: %v", what, err)
		}
	case <-limit.Done():
		t.Fatalf("timed out after %s waiting for %s", patience, what)
	}
}

// quiet returns an environment in which no assets of this machine are found, and none downloaded.
func quiet(t testing.TB, more ...string) []string {
	t.Helper()
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), indexVariable + "=" + noIndex}, more...)
}

// wantOnly checks the names in a cache, without locks.
func wantOnly(t testing.TB, cache string, names ...string) {
	t.Helper()
	wantIn(t, filepath.Join(cache, "k8s"), names...)
}

// wantIn checks the names in a directory, without locks.
func wantIn(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".lock") {
			got = append(got, entry.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}
