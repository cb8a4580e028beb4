package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The end of an API server of others is no event. The run ends when no good answer arrived for some time, also
// if the server or its storage hangs.
func TestServerOfOthersEnds(t *testing.T) {
	t.Parallel()
	for program, signal := range map[string]syscall.Signal{"etcd": syscall.SIGKILL, "kube-apiserver": syscall.SIGSTOP} {
		t.Run(program+" "+signal.String(), func(t *testing.T) {
			t.Parallel()
			server, err := envtest.Start(t.Context(), envtest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			}()
			var began time.Time
			end := sync.OnceFunc(func() {
				began = time.Now()
				if err := signalServer(filepath.Dir(server.Environment.ControlPlane.Etcd.URL.Path), program, signal); err != nil {
					t.Error(err)
				}
			})
			out, err := engine.Run(t.Context(), engine.Options{Scenarios: catalogue(t), Provider: providers.RESTConfig{Config: server.Config}, Progress: onPass(end)})
			if took := time.Since(began); !errors.Is(err, target.ErrGone) || took < target.Silence/2 || took > target.Silence+2*endPatience {
				t.Errorf("the run ended %s after the end of the server, with %v; want %v after %s", took, err, target.ErrGone, target.Silence)
			} else {
				t.Logf("ended after %s: %v", took, err)
			}
			for _, outcome := range out.Outcomes {
				if outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored && !outcome.NotReached {
					t.Errorf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason)
				}
			}
		})
	}
}

// endPatience is much longer than a run takes to end, and shorter than a server may take to restart.
const endPatience = 10 * time.Second

// signalServer sends a signal to the program of the only server whose files are below a folder.
func signalServer(folder, program string, signal syscall.Signal) error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		line, _ := os.ReadFile(file) // empty if the process has ended
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		path, _, _ := bytes.Cut(line, []byte{0})
		if filepath.Base(string(path)) != program || !bytes.Contains(environ, []byte("HOME="+folder)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, signal)
	}
	return fmt.Errorf("found no process of %s", program)
}
