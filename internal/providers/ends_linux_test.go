package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/served"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The end of etcd or kube-apiserver ends the run, with the reason, also on a server that is kept. No
// scenario fails because of it.
func TestServerEnds(t *testing.T) {
	for _, program := range []string{"etcd", "kube-apiserver"} {
		t.Run(program, func(t *testing.T) { runUntilKilled(t, program, EnvtestOptions{}) })
		t.Run(program+" of a kept server", func(t *testing.T) {
			binaries, err := assets.Ensure(t.Context(), assets.Options{})
			if err != nil {
				t.Fatal(err)
			}
			folder, err := os.MkdirTemp("", "at") //nolint:usetesting // the path of t.TempDir is too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(folder) }()
			t.Setenv("TMPDIR", folder)
			place, ready, ended := served.Place{Dir: filepath.Join(folder, "served")}, make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- served.Run(t.Context(), served.RunOptions{
					Options: served.Options{Assets: binaries, Profile: DefaultProfile},
					Place:   place, Key: "k", Idle: time.Hour, Ready: func(served.Info) { close(ready) },
				})
			}()
			select {
			case <-ready:
			case err := <-ended:
				t.Fatal(err)
			}
			find := func(ctx context.Context, _ assets.Assets) (*served.Session, error) { return place.Find(ctx, "k") }
			runUntilKilled(t, program, EnvtestOptions{Served: find})
			if err := <-ended; err == nil || !strings.Contains(err.Error(), program+" ended by itself") {
				t.Errorf("serve ended with %v", err)
			}
			if session, err := find(t.Context(), binaries); session != nil || err != nil {
				t.Errorf("the next run finds %v, %v; want no server", session, err)
			}
		})
	}
}

// endPatience is much longer than a run takes to end, and shorter than a server may take to restart.
const endPatience = 10 * time.Second

// runUntilKilled runs the catalogue, and kills a program of its server when a scenario passes.
func runUntilKilled(t *testing.T, program string, options EnvtestOptions) {
	t.Helper()
	if options.Served == nil {
		t.Setenv("TMPDIR", t.TempDir())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var late *time.Timer
	kill := sync.OnceFunc(func() {
		late = time.AfterFunc(endPatience, cancel)
		if err := killServer(os.TempDir(), program); err != nil {
			t.Error(err)
			cancel()
		}
	})
	out, err := engine.Run(ctx, engine.Options{Scenarios: catalogue(t), Provider: NewEnvtest(options), Progress: onPass(kill)})
	if late != nil {
		late.Stop()
	}
	if ctx.Err() != nil || !errors.Is(err, target.ErrGone) || !strings.Contains(err.Error(), program+" ended by itself (signal: killed)\nthe last lines that it printed:\n  ") {
		t.Fatalf("the run ended with %v (%v); want the end of %s within %s", err, ctx.Err(), program, endPatience)
	}
	for _, outcome := range out.Outcomes {
		if outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored && !outcome.NotReached {
			t.Errorf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason)
		}
	}
}

// killServer kills the program of the only server whose files are below a folder.
func killServer(folder, program string) error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		line, _ := os.ReadFile(file) // empty if the process has ended
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		path, _, _ := bytes.Cut(line, []byte{0})
		if filepath.Base(string(path)) != program || !bytes.Contains(environ, []byte("HOME="+folder+"/")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("found no process of %s", program)
}
