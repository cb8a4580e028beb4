package envtest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/guard"
	"github.com/admissiontest/admissiontest/internal/pause"
)

const (
	// startLimit is the limit for the start of a server.
	startLimit = time.Minute
	// stopLimit is the limit for a server to end after a signal.
	stopLimit = 20 * time.Second
	// readyPoll is the time between two questions whether a server is ready.
	readyPoll = 25 * time.Millisecond
	// outputLimit is the limit for the last output of a server to arrive after its end.
	outputLimit = 5 * time.Second
)

// process is a running server.
type process struct {
	name    string
	needs   *process // the server without which this one does not get ready, or nil
	command *exec.Cmd
	stderr  output
	ended   chan struct{} // closed when it ended
	err     error         // how it ended; valid after ended is closed
}

// run starts a server.
func run(name string, command *exec.Cmd) (*process, error) {
	p := &process{name: name, command: command, ended: make(chan struct{})}
	p.stderr.First, p.stderr.Last = outputSize, outputSize
	command.Stderr, command.WaitDelay = &p.stderr, outputLimit
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		p.err = command.Wait()
	}()
	return p, nil
}

// ready waits until check returns nil. The error is the error of ctx; or it says that the server, or
// one that it needs, ended, with the last error that it printed; or it has the last error of check.
func (p *process) ready(ctx context.Context, check func(context.Context) error) error {
	limited, cancel := pause.WithTimeout(ctx, startLimit)
	defer cancel()
	polling, stop := context.WithCancel(limited)
	defer stop()
	for one := p; one != nil; one = one.needs {
		go func() {
			select {
			case <-one.ended:
				stop()
			case <-polling.Done():
			}
		}()
	}
	var last error
	err := wait.PollUntilContextCancel(polling, readyPoll, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return fmt.Errorf("%s is not ready after %s: %w; it printed: %s", p.name, startLimit, last, p.stderr.last())
	}
	return p.whyEnded(false)
}

// whyEnded returns the error of the server if it ended, or of one that it needs, which then is the cause.
func (p *process) whyEnded(wasReady bool) error {
	if p.needs != nil {
		if err := p.needs.whyEnded(wasReady); err != nil {
			return err
		}
	}
	select {
	case <-p.ended:
	default:
		return nil
	}
	state := p.command.ProcessState.String()
	text := fmt.Sprintf("%s ended before it was ready (%s); it printed: %s", p.name, state, p.stderr.last())
	if wasReady {
		text = fmt.Sprintf("%s ended by itself (%s)\nthe last lines that it printed:\n%s", p.name, state, p.stderr.lines(lastLines))
	}
	return &EndedError{Program: p.name, State: state, Log: p.stderr.Text(), text: text}
}

// lastLines is how many lines of a server are in the error about its end.
const lastLines = 5

// EndedError is the error of a server that ended by itself, before it was ready or later.
type EndedError struct {
	// Program is APIServer, or etcd.
	Program string
	// State is how it ended: "exit status 1".
	State string
	// Log is the end of what it printed.
	Log string

	text string
}

// Error says how the server ended, with the last error that it printed; or with its last lines, if it was ready.
func (e *EndedError) Error() string { return e.text }

// stop ends the server and waits for its end: by SIGTERM if gracefully, else by SIGKILL. If it
// does not end in time, the error says so, and supervision.close kills it.
func (p *process) stop(gracefully bool) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	end := guard.Kill
	if gracefully {
		end = guard.Terminate
	}
	if err := end(p.command.Process); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	limited, cancel := pause.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	select {
	case <-p.ended:
		return nil
	case <-limited.Done():
		return fmt.Errorf("stop %s: it did not end in %s, and was killed", p.name, stopLimit)
	}
}

// output is what a server printed: its first and last bytes, and the first line about a panic, whose stack can
// be longer than the last bytes.
type output struct {
	guard.Log

	mu        sync.Mutex
	panicked  string
	noFiles   int       // see withoutFiles
	noFilesAt time.Time // when noFiles grew last
}

// aboutPanic matches a line of Go's runtime, or of k8s.io/apimachinery/pkg/util/runtime, and
// the two lines after it if they are indented: the value of the panic.
var aboutPanic = regexp.MustCompile(`(?m)^.*(panic: |Observed a panic).*\n(?:[ \t].*\n){0,2}`)

// outputSize is how many bytes are kept of the beginning and of the end.
const outputSize = 16 << 10

// Write adds data.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := bytes.Count(data, []byte("too many open files")); found > 0 {
		o.noFiles, o.noFilesAt = o.noFiles+found, time.Now()
	}
	if o.panicked == "" {
		text := o.Tail() + string(data)
		// The word alone is in other lines too, and the expression is slow.
		if strings.Contains(text, "panic: ") || strings.Contains(text, "Observed a panic") {
			o.panicked = strings.Join(strings.Fields(aboutPanic.FindString(text)), " ")
		}
	}
	return o.Log.Write(data)
}

// acceptPause is the longest time between two lines of an HTTP server that cannot accept a connection because it
// cannot open more files (net/http: Server.Serve).
const acceptPause = time.Second

// withoutFiles returns a number that grows while the server cannot open more files.
func (o *output) withoutFiles() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.noFiles > 0 && time.Since(o.noFilesAt) < 2*acceptPause {
		o.noFiles++ // it can still be so
	}
	return o.noFiles
}

// couldNotOpen says what a server could not do, and why.
const couldNotOpen = "could not open more files: its limit (ulimit -n) is too low, or other clients hold connections to it"

// lines returns the first line about a panic, and up to n of the last lines.
func (o *output) lines(n int) string {
	lines := o.Lines(n)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panicked != "" {
		lines = slices.Insert(lines, 0, o.panicked)
	}
	return "  " + strings.Join(lines, "\n  ")
}

// last returns the first line about a panic, else the last line with an error, else the last
// line. It also says if the server could not open more files.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panicked != "" {
		return o.panicked
	}
	without := ""
	if o.noFiles > 0 {
		without = "\nit " + couldNotOpen
	}
	lines := o.Lines(math.MaxInt)
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "E") || strings.HasPrefix(line, "F") || strings.HasPrefix(line, "Error") {
			return line + without
		}
	}
	return lines[len(lines)-1] + without
}
