package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/scenarios"
)

// Process is what a command has of its process.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Env is the environment, NAME=value each, as far as the command line itself
	// heeds it: NO_COLOR and TERM. Control-plane binaries and kubeconfigs are looked
	// for as the environment of the process itself says.
	Env []string
}

// ThisProcess is the one we run in.
func ThisProcess() Process {
	return Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
}

// Main carries out a command line, without the name of the program, and returns
// the exit code. When ctx is cancelled the command cleans up and ends with
// ExitInterrupted.
func Main(ctx context.Context, args []string, process Process) int {
	envtest.DiscardLogs() // no library's log between our lines
	klog.SetLogger(logr.Discard())
	return (&app{Process: process, catalogue: scenarios.FS}).main(ctx, args)
}

// app is one execution of a command line.
type app struct {
	Process
	// catalogue holds the scenarios that names are looked up in.
	catalogue fs.FS
	// provider stands in for the targets, in tests. Nil is the real ones.
	provider engine.Provider
	// began is true once the command line was understood.
	began bool
}

func (a *app) main(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	err := knownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	code := codeOf(err)
	if err != nil && !a.began {
		code = ExitUsage
	}
	if err != nil && ctx.Err() != nil {
		code = ExitInterrupted
		if errors.Is(err, ctx.Err()) {
			err = errors.New("interrupted")
		}
	}
	printError(a.Stderr, err)
	return code
}

// action makes cobra's function of ours, and notes that flags and arguments were
// understood.
func (a *app) action(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		a.began = true
		return do(command.Context(), args)
	}
}

// env returns a variable of the environment; the last setting counts.
func (a *app) env(name string) string {
	value := ""
	for _, setting := range a.Env {
		if text, ok := strings.CutPrefix(setting, name+"="); ok {
			value = text
		}
	}
	return value
}

// terminal reports whether what is written goes to a terminal that understands
// cursor movement.
func (a *app) terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && a.env("TERM") != "dumb" //nolint:gosec // a file descriptor is small
}

// color reports whether to write colours to w. See https://no-color.org.
func (a *app) color(w io.Writer) bool { return a.terminal(w) && a.env("NO_COLOR") == "" }
