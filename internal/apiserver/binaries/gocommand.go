package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// tailLines is the number of lines of the output of `go` that an error has. outputSize is how many bytes are kept for them.
const (
	tailLines  = 15
	outputSize = 16 << 10
)

// toolchain runs `go` for one job.
type toolchain struct {
	job  *job
	path string   // of `go`
	env  []string // of `go`
}

// newToolchain finds `go` and sets its environment. The temporary files of `go` go to
// scratch, so that they are removed with it.
func newToolchain(j *job, scratch string) (*toolchain, error) {
	name := j.goCommand
	if name == "" {
		name = "go"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("build control plane %s: %w: %w; %s", j.version, ErrNoToolchain, err, Advice(string(j.version)))
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("build control plane %s: %w", j.version, err)
	}
	t := &toolchain{job: j, path: path}
	t.env = append(append(t.env, j.env...),
		"GOFLAGS="+keptFlags(j.getenv("GOFLAGS")), "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+scratch)
	return t, nil
}

// keptFlags returns GOFLAGS with those flags of the user that only change the speed of a
// build. Flags that change its result are dropped.
func keptFlags(users string) string {
	kept := []string{"-mod=mod", "-buildvcs=false"}
	for _, flag := range strings.Fields(users) {
		if strings.HasPrefix(flag, "-p=") || flag == "-modcacherw" {
			kept = append(kept, flag)
		}
	}
	return strings.Join(kept, " ")
}

// goCall is one run of `go`.
type goCall struct {
	dir   string // where it runs
	doing string // for the progress lines
	args  []string
}

// run runs `go` and returns its standard output. When the context ends, the whole process
// group is killed. The error of `go` wraps an *exec.ExitError and has the last lines of its
// output.
func (t *toolchain) run(ctx context.Context, call goCall) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.path, call.args...)
	cmd.Dir, cmd.Env = call.dir, t.env
	cmd.WaitDelay = 5 * time.Second
	processes.Detach(cmd)
	cmd.Cancel = func() error { return processes.Kill(cmd.Process) }
	var out bytes.Buffer
	said := &processes.Log{Last: outputSize}
	cmd.Stdout, cmd.Stderr = &out, said

	started := time.Now()
	stop := t.job.every(func() {
		t.job.report("%s: %s", call.doing, elapsed(started))
	})
	err := cmd.Run()
	stop()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run go %s: %w", call.args[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("run %s %s: %w: %w", t.path, call.args[0], ErrNoToolchain, err)
	}
	if err != nil {
		text := errorLines(said)
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(call.args, " "), err, text)
		if tooOld(text) {
			err = fmt.Errorf("%w: %w", ErrNoToolchain, err)
		}
	}
	return out.Bytes(), err
}

// errorLines returns the last lines of what `go` printed, without its progress.
func errorLines(said *processes.Log) string {
	lines := slices.DeleteFunc(said.Lines(math.MaxInt), func(line string) bool { return strings.HasPrefix(line, "go: downloading ") })
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// tooOld reports whether `go` failed because a module needs a newer Go.
func tooOld(text string) bool {
	return strings.Contains(text, "GOTOOLCHAIN=local") || strings.Contains(text, "toolchain not available")
}
