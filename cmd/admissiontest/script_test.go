package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/admissiontest/admissiontest/internal/golden"
)

// TestScripts runs the scripts in testdata/script: the tests of whole runs, as users call the command. Besides the
// commands of package testscript there are
//
//	exits CODE PROGRAM [ARGUMENT ...]   run a program, which must end with the exit code
//	server                              set KUBECONFIG to the kubeconfig of the one API server of all scripts
//	assets                              set ASSETS to the folder with kube-apiserver and etcd
//
// and TESTDATA is a folder with programs to compile. A script in which "cmp stdout FILE" fails is rewritten by -update.
func TestScripts(t *testing.T) {
	programs, err := filepath.Abs(filepath.Join("internal", "cli", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := sync.OnceValue(func() string { return server(t) })
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: golden.Update(), RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(append(os.Environ(), env.Vars...), "HOME="+os.Getenv("HOME"), "GOFLAGS=", "GOTRACEBACK=single", "TESTDATA="+programs)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"server": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("KUBECONFIG", kubeconfig()) },
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
