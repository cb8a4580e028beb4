//go:build unix

package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// patience is the limit of each wait of a test.
const patience = 30 * time.Second

// running is a program that a test started under supervision.
type running struct {
	*process
	command *exec.Cmd
}

// script runs a shell script under supervision, as controller-runtime starts a server. Its $1 is the folder.
func script(t *testing.T, s *supervision, text string) *running {
	t.Helper()
	path, err := s.wrap(program{name: "script", path: "/bin/sh", dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{process: s.process("script"), command: exec.Command(path, "-c", text, "sh", s.folder)}
	r.command.Stderr = r.process
	processes.Detach(r.command)
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.command.Wait()
	}()
	return r
}

func supervised(t *testing.T) *supervision {
	t.Helper()
	s, err := supervise()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// wantLine waits until the last line that a process printed begins with a string.
func wantLine(t *testing.T, p *running, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(context.Context) (bool, error) {
		return strings.HasPrefix(p.stderr.last(), text), nil
	})
	if err != nil {
		t.Fatalf("%v; it printed %q, want %q", err, p.stderr.last(), text)
	}
}

// within fails if something does not happen in time.
func within(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-happened:
	case <-ctx.Done():
		t.Fatalf("not after %s: %s", patience, what)
	}
}

// The server gets SIGTERM, and its exit code is known, although controller-runtime starts the starter.
func TestStarter(t *testing.T) {
	s := supervised(t)
	p := script(t, s, `trap 'kill $!; echo bye >&2; exit 7' TERM; sleep 1000 & echo here >&2; wait`)
	wantLine(t, p, "here")
	s.terminate()
	within(t, "the server ends", p.ended)
	if state := p.state(); state != "exit status 7" || p.stderr.last() != "bye" {
		t.Errorf("the server ended with %s and printed %q; want exit status 7 and bye", state, p.stderr.last())
	}
	if left, err := os.ReadDir(s.running()); err != nil || len(left) > 0 {
		t.Errorf("noted as running: %v, %v; want nothing", left, err)
	}
}

// It is known how a server ended: by a signal, also if nothing of its group is left, or with an exit code. That of
// klog.Fatal, 255, is not a signal.
func TestHowAServerEnded(t *testing.T) {
	for text, want := range map[string]string{
		`kill -s KILL $$`:                       "signal: killed",
		`kill -s KILL 0`:                        "signal: killed",
		`exit 255`:                              "exit status 255",
		`echo Error: no such thing >&2; exit 3`: "exit status 3",
	} {
		t.Run(text, func(t *testing.T) {
			p := script(t, supervised(t), text)
			within(t, "the server ends", p.ended)
			early, later := p.whyEnded(false).Error(), p.whyEnded(true).Error()
			if !strings.HasPrefix(early, "script ended before it was ready ("+want+"); it printed: ") || !strings.HasPrefix(later, "script ended by itself ("+want+")") {
				t.Errorf("got %s, and %s; want %s", early, later, want)
			}
			if strings.Contains(text, "Error") && !strings.HasSuffix(early, "; it printed: Error: no such thing") {
				t.Errorf("got %s; want what the server printed", early)
			}
		})
	}
}

// close kills a server that ignores SIGTERM, and the processes that the server started, and
// removes the folder.
func TestCloseKills(t *testing.T) {
	s := supervised(t)
	p := script(t, s, `trap '' TERM; mkdir -p "$1/a/b"; sleep 1000 & echo child >&2; wait`)
	wantLine(t, p, "child")
	t.Cleanup(func() { _ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) }) // nothing to do, unless the test fails
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	within(t, "close returns", closed)
	within(t, "the server ends", p.ended)
	if _, err := os.Stat(s.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder %s exists after close: %v", s.folder, err)
	}
}

// The script that controller-runtime runs does not start the program for its question about flags.
func TestHelp(t *testing.T) {
	path, err := supervised(t).wrap(program{name: "script", path: "/no/such/program", dir: "/no/such/folder"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "--help").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("got %v and %q", err, out)
	}
}

// A server that is started after the cut, or just before it, is killed.
func TestStartAfterCut(t *testing.T) {
	s := supervised(t)
	for range 20 {
		p := script(t, s, `exec sleep 1000`)
		s.cut()
		within(t, "the server ends", p.ended)
		if t.Failed() {
			break
		}
		s = supervised(t)
	}
}

// The servers get an environment that this package chooses: no proxy, no settings of etcd, no
// credentials of the caller.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{
		"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "ETCD_NAME",
		"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "GODEBUG",
	} {
		t.Setenv(name, "of-the-caller")
	}
	t.Setenv("GOCOVERDIR", "covered")
	s := supervised(t)
	p := script(t, s, `env >&2`)
	within(t, "env ends", p.ended)
	var names []string
	for line := range strings.Lines(p.stderr.Text()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
		if want := map[string]string{"HOME": s.folder, "TMPDIR": s.folder}[name]; want != "" && value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
		if name == "GOCOVERDIR" && !filepath.IsAbs(value) {
			t.Errorf("GOCOVERDIR is %q, want an absolute path", value)
		}
	}
	// A shell sets the last ones itself.
	allowed := []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR", "GOGC", "GOMEMLIMIT", "SSL_CERT_FILE", "SSL_CERT_DIR", "PWD", "OLDPWD", "SHLVL", "_"}
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			t.Errorf("the server gets the variable %s", name)
		}
	}
	if !slices.Contains(names, "GOCOVERDIR") || !slices.Contains(names, "PATH") {
		t.Errorf("the server gets %q; want GOCOVERDIR and PATH among them", names)
	}
}

// The folder has an unpredictable name, and only its owner can enter it.
func TestFolder(t *testing.T) {
	one, other := supervised(t), supervised(t)
	if one.folder == other.folder {
		t.Errorf("two folders are the same: %s", one.folder)
	}
	info, err := os.Stat(one.folder)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("the folder has mode %v, %v; want %v", info.Mode(), err, os.ModeDir|0o700)
	}
}

// Start says what to do if it cannot make its folder, or if the folder has too long a path for a Unix socket.
func TestFolderThatCannotBeUsed(t *testing.T) {
	file, long := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(long, 0o700)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{file: "set TMPDIR to", filepath.Join(file, "none"): "set TMPDIR to", long: "set TMPDIR to a directory with a shorter path"} {
		t.Setenv("TMPDIR", dir)
		server, err := Start(t.Context(), Options{})
		if err == nil || server != nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), want) {
			t.Errorf("Start with TMPDIR=%s: %v; want an error that says %s", dir, err, want)
		}
	}
	if left, _ := os.ReadDir(long); len(left) > 0 {
		t.Errorf("Start left %v", left)
	}
}

// The line about a panic is kept, although its stack is longer than what is kept.
func TestTailKeepsThePanic(t *testing.T) {
	stack := strings.Repeat("\tgoroutine\n", outputSize/10)
	for want, parts := range map[string][]string{
		`E1122 "Observed a panic" panic=< seeded bug > stacktrace=<`: {
			"E1122 before\nE1122 \"Obser", "ved a panic\" panic=<\n\tseeded bug\n > stacktrace=<\n" + stack, " >\n",
		},
		"panic: seeded bug": {"E1122 before\npan", "ic: seeded bug\n\ngoroutine 1 [running]:\n" + stack},
	} {
		t.Run(want, func(t *testing.T) {
			said := output{Log: processes.Log{First: outputSize, Last: outputSize}}
			for _, part := range parts {
				if _, err := said.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if got := said.last(); got != want {
				t.Errorf("got %q, want %q, the line about the panic", got, want)
			}
		})
	}
}

// A server that cannot open more files may not have made a connection that it needed.
func TestServerWithoutFiles(t *testing.T) {
	said := output{Log: processes.Log{Last: outputSize}}
	if said.withoutFiles() != 0 {
		t.Error("a server that printed nothing has no files")
	}
	_, _ = said.Write([]byte("accept tcp: too many open files; retrying in 1s\n"))
	if got := said.last(); !strings.Contains(got, "retrying in 1s\nit could not open more files") {
		t.Errorf("got %q", got)
	}
	server := &Server{apiServer: &process{}}
	none := errors.New("no response")
	if err := server.Explain(none); err != none { //nolint:errorlint // it is the same
		t.Errorf("got %v, want %v", err, none)
	}
	_, _ = server.apiServer.stderr.Write([]byte("too many open files\n"))
	if err := server.Explain(none); !errors.Is(err, none) || err.Error() != "no response; kube-apiserver "+couldNotOpen || server.Explain(nil) != nil {
		t.Errorf("got %v, want the reason", err)
	}
	if first := said.withoutFiles(); first == 0 || said.withoutFiles() == first {
		t.Errorf("the number %d does not grow within %s", first, 2*acceptPause)
	}
	said.noFilesAt = time.Now().Add(-2 * acceptPause)
	if before := said.withoutFiles(); said.withoutFiles() != before {
		t.Error("the number grows later")
	}
}

// A program can be started at once, also while other goroutines start programs.
func TestWrapWhileOthersStart(t *testing.T) {
	s := supervised(t)
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run() // it is killed at the end
			}
		})
	}
	defer others.Wait()
	defer cancel()
	for i := range 300 {
		path, err := s.wrap(program{name: fmt.Sprintf("script%d", i), path: "/bin/sh", dir: "/"})
		if err == nil {
			err = exec.CommandContext(ctx, path, "--help").Run()
		}
		if err != nil {
			t.Fatalf("script %d: %v", i, err)
		}
	}
}
