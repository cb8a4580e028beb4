package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/scenarios"
)

// Process holds the streams and the environment of a command.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Env is the environment as NAME=value settings. The command line reads NO_COLOR and
	// TERM from it. The variables that name control-plane binaries and kubeconfigs are
	// read from the environment of the process.
	Env []string
}

// ThisProcess returns the streams and the environment of the running process.
func ThisProcess() Process {
	return Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
}

// Main runs a command line, given without the name of the program, and returns the exit
// code. When ctx is cancelled, the command cleans up and Main returns exitInterrupted.
func Main(ctx context.Context, args []string, process Process) int {
	klog.SetLogger(logr.Discard()) // so that libraries do not log between the lines of the command
	return (&app{Process: process, catalogue: scenarios.FS}).main(ctx, args)
}

// app is one execution of a command line.
type app struct {
	Process
	// catalogue has the scenarios that can be selected by name.
	catalogue fs.FS
	// provider replaces the targets in tests. Nil means the target that the flags choose.
	provider target.Provider
	// parsed is true as soon as the flags and arguments are accepted. An error before
	// that is a usage error.
	parsed bool
}

func (a *app) main(ctx context.Context, args []string) int {
	a.Stdout, a.Stderr = filtered(a.Stdout), filtered(a.Stderr)
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // cobra takes os.Args for nil
	err := knownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	code := codeOf(err)
	if err != nil && !a.parsed {
		code = exitUsage
	}
	if last := (*lastRunError)(nil); errors.As(err, &last) {
		code = last.code
	} else if err != nil && ctx.Err() != nil {
		code = exitInterrupted
		if errors.Is(err, ctx.Err()) {
			err = errors.New("interrupted")
		}
	}
	printError(a.Stderr, err)
	return code
}

// filtered returns the writer of everything that the command prints. It changes what a terminal or a CI
// system would execute: files of scenarios, API servers and programs can have such texts.
func filtered(w io.Writer) io.Writer {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) { //nolint:gosec // a file descriptor is small
		return redact.NewWriter(w)
	}
	return redact.NewWriter(&untilClosed{out: w})
}

// untilClosed is a Writer that discards the rest of the output when its reader has ended, as in
// "admissiontest list | head". This is no error: the exit code of a run stays that of its outcomes.
type untilClosed struct {
	out    io.Writer
	closed atomic.Bool
}

// Write writes text, unless the reader has ended.
func (u *untilClosed) Write(text []byte) (int, error) {
	if u.closed.Load() {
		return len(text), nil
	}
	n, err := u.out.Write(text)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		u.closed.Store(true)
		return len(text), nil
	}
	return n, err
}

// selection returns a selectionFlags that knows the names of the catalogue.
func (a *app) selection() selectionFlags {
	return selectionFlags{catalogue: a.catalogue, stdin: a.Stdin, note: a.note}
}

// action adapts a function to cobra, and sets a.parsed.
func (a *app) action(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		a.parsed = true
		return do(command.Context(), args)
	}
}

// reading is action for a function that starts and leaves nothing, and so need not end with its context: the
// command ends without it. The function can wait for a file or compute for long.
func (a *app) reading(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return a.action(func(ctx context.Context, args []string) error {
		_, err := untilInterrupted(ctx, func() (struct{}, error) { return struct{}{}, do(ctx, args) })
		return err
	})
}

// endGrace is how long a function may work after the interrupt: to end properly, or to finish a file.
const endGrace = 500 * time.Millisecond

// untilInterrupted returns what a function returns, or soon after ctx was cancelled, its cause. The function then
// still runs, until the process ends.
func untilInterrupted[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	all, done := processes.UntilDone(ctx, endGrace, func() result {
		value, err := do()
		return result{value, err}
	})
	if !done {
		return all.value, context.Cause(ctx)
	}
	return all.value, all.err
}

// env returns a variable of the environment. The last setting counts.
func (a *app) env(name string) string {
	value := ""
	for _, setting := range a.Env {
		if text, ok := strings.CutPrefix(setting, name+"="); ok {
			value = text
		}
	}
	return value
}

// color reports whether to write colours to w: a terminal, unless the environment says no. See https://no-color.org.
func (a *app) color(w io.Writer) bool {
	file, ok := redact.NewWriter(w).Out().(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && a.env("TERM") != "dumb" && a.env("NO_COLOR") == "" //nolint:gosec // a file descriptor is small
}
