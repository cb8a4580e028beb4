package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// tailLines is how many of the last lines of `go` an error shows.
const tailLines = 15

// toolchain runs `go` for one job.
type toolchain struct {
	job  *job
	path string   // of the program
	env  []string // its environment
}

// newToolchain finds `go` and settles its environment; scratch gets go's own
// temporary files, so that they go where everything else goes.
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

// keptFlags takes from the user's GOFLAGS what changes how fast a build is, and
// drops what would change its outcome.
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
	doing string // what the heartbeat says
	total int    // packages there are to compile; zero where none are compiled
	args  []string
}

// run runs `go` and returns its standard output. When the context ends, the
// whole process group is killed. An error of `go` is an *exec.ExitError wrapped
// with the last lines it wrote.
func (t *toolchain) run(ctx context.Context, call goCall) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.path, call.args...)
	cmd.Dir, cmd.Env = call.dir, t.env
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	var out bytes.Buffer
	said := new(narration)
	cmd.Stdout, cmd.Stderr = &out, said

	// The kernel ends a command together with the thread that started it, where
	// system_linux.go asks for it: this goroutine keeps its thread until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started := time.Now()
	stop := t.job.every(func() {
		t.job.tell("%s: %s%s", call.doing, elapsed(started), said.progress(call.total))
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
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(call.args, " "), err, said.tail())
		if said.tooOld() {
			err = fmt.Errorf("%w: %w", ErrNoToolchain, err)
		}
	}
	return out.Bytes(), err
}

// narration reads what `go` writes to standard error while it works.
type narration struct {
	mu         sync.Mutex
	partial    []byte
	downloaded int
	compiled   int
	last       []string
}

// Write takes the next piece of output.
func (n *narration) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.partial = append(n.partial, p...)
	for {
		line, rest, whole := bytes.Cut(n.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		n.line(string(line))
		n.partial = append([]byte(nil), rest...)
	}
}

func (n *narration) line(text string) {
	switch {
	case strings.HasPrefix(text, "go: downloading "):
		n.downloaded++
	case text != "" && !strings.ContainsAny(text, " \t:"):
		n.compiled++ // with -v, `go build` prints the path of each package
	default:
		n.last = append(n.last, text)
		n.last = n.last[max(0, len(n.last)-tailLines):]
	}
}

// progress is what has happened so far, to follow the time in a heartbeat.
func (n *narration) progress(total int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := ""
	if n.downloaded > 0 {
		text += fmt.Sprintf(", %d modules downloaded", n.downloaded)
	}
	if total > 0 {
		text += fmt.Sprintf(", %d of at most %d packages compiled", n.compiled, total)
	}
	return text
}

// tail is the end of what `go` said, without its news of progress.
func (n *narration) tail() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.last
	if len(n.partial) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(n.partial))
	}
	return strings.Join(lines, "\n")
}

// tooOld tells whether `go` refused because a module wants a newer Go.
func (n *narration) tooOld() bool {
	text := n.tail()
	return strings.Contains(text, "GOTOOLCHAIN=local") || strings.Contains(text, "toolchain not available")
}
