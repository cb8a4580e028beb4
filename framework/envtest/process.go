package envtest

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// process is a server that runs.
type process struct {
	name    string
	status  string // the path of a file in which the starter writes the exit code
	stderr  output
	started chan struct{} // closed when it runs
	ended   chan struct{} // closed when it has ended, and all that it printed was read
}

// process returns the process of a program that is not started yet.
func (s *supervision) process(name string) *process {
	p := &process{name: name, status: filepath.Join(s.folder, name+".status"), started: make(chan struct{}), ended: make(chan struct{})}
	p.stderr.First, p.stderr.Last = outputSize, outputSize
	return p
}

// ReadFrom reads what the server prints until it ends. (os/exec calls it once, by io.Copy.)
func (p *process) ReadFrom(r io.Reader) (int64, error) {
	close(p.started)
	return io.Copy(struct{ io.Writer }{&p.stderr}, r)
}

// Write adds to what the server printed.
func (p *process) Write(data []byte) (int, error) { return p.stderr.Write(data) }

// state says how the server ended, as os.ProcessState does.
func (p *process) state() string {
	const signals, lastSignal = 128, 64 // a shell adds 128 to the number of a signal
	text, _ := os.ReadFile(p.status)
	code, err := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil: // the starter did not live to write it: all were killed
		return "signal: " + syscall.SIGKILL.String()
	case code > signals && code <= signals+lastSignal: // 255 is the exit code of klog.Fatal
		return "signal: " + syscall.Signal(code-signals).String()
	}
	return "exit status " + strconv.Itoa(code)
}

// whyEnded returns the error of the server, which ended by itself.
func (p *process) whyEnded(wasReady bool) error {
	state := p.state()
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

// output is what a server printed: its first and last bytes, and the first line about a panic, whose stack can
// be longer than the last bytes.
type output struct {
	processes.Log

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

// last returns the first line about a panic, else the last lines with an error, else the last line. It also says if
// the server could not open more files.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panicked != "" {
		return o.panicked
	}
	lines := o.Lines(math.MaxInt)
	failed := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return !strings.HasPrefix(line, "E") && !strings.HasPrefix(line, "F")
	})
	if len(failed) == 0 {
		failed = lines[len(lines)-1:]
	}
	if o.noFiles > 0 {
		failed = append(failed, "it "+couldNotOpen)
	}
	return strings.Join(failed[max(0, len(failed)-lastLines):], "\n")
}
