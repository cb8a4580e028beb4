package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/golden"
)

// TestScripts runs the scripts in testdata/script: the tests of whole runs, as users call the command. Besides the
// commands of package testscript there are
//
//	exits CODE PROGRAM [ARGUMENT ...]   run a program, which must end with the exit code
//	server                              set KUBECONFIG to the kubeconfig of the one API server of all scripts
//	assets                              set ASSETS to the folder with kube-apiserver and etcd
//	webhook                             set WEBHOOK to a compiled webhook (testdata/webhook), and ADDRESS to one that it can listen on
//	gone STRING                         wait until no process has a string in its command line
//
// and TESTDATA is a folder with programs to compile, DOCTOR has the files of the tests of package doctor, DOCS the manual. A script in which "cmp stdout FILE" fails is rewritten by -update.
func TestScripts(t *testing.T) {
	programs, err := filepath.Abs(filepath.Join("internal", "cli", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	webhook := sync.OnceValue(func() string { return compiledWebhook(t, programs) })
	kubeconfig := sync.OnceValue(func() string { return server(t) })
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: golden.Update(), RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			temporary, err := os.MkdirTemp("", "at-") //nolint:usetesting // a short path: sockets are in it
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(temporary) })
			env.Vars = append(append(os.Environ(), env.Vars...), "HOME="+os.Getenv("HOME"), "GOFLAGS=", "GOTRACEBACK=single", "TMPDIR="+temporary, "TESTDATA="+programs,
				"DOCTOR="+filepath.Join(root, "internal", "doctor", "testdata"), "DOCS="+filepath.Join(root, "docs"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"server": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("KUBECONFIG", kubeconfig()) },
			"gone":   gone,
			"webhook": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("WEBHOOK", webhook())
				ts.Setenv("ADDRESS", freeAddress(ts))
			},
			"assets": func(ts *testscript.TestScript, _ bool, _ []string) {
				found, _ := folders(t)
				ts.Setenv("ASSETS", found.Dir)
			},
		},
	})
}

// exits is the command exits of scripts.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT ...]")
	}
	code, err := 0, ts.Exec(args[1], args[2:]...)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// compiledWebhook compiles the webhook in testdata/webhook of a folder.
func compiledWebhook(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "webhook")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./webhook")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// freeAddress returns an address that nothing listens on. Its port is below those that Linux gives to connections and to
// listeners at port 0, so that nothing else gets it before the program starts.
func freeAddress(ts *testscript.TestScript) string {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	ts.Fatalf("100 ports of 127.0.0.1 are in use")
	return ""
}

// gone is the command gone of scripts.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone STRING")
	}
	var found []string
	err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		found = slices.DeleteFunc(files, func(file string) bool {
			line, _ := os.ReadFile(file) // empty if the process has ended
			return !strings.Contains(string(line), args[0])
		})
		return len(found) == 0, err
	})
	if err != nil {
		ts.Fatalf("left: %q: %v", found, err)
	}
}
