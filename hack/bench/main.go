// Command bench measures the suite and prints the figures. `make bench` runs it. It is not part of a release.
//
//	load       the command without an API server
//	catalogue  the whole catalogue as the command runs it
//
// # Promise
//
// The catalogue is measured as a user runs it: the command is a process, and its memory is that
// of the process. Scenarios that did not pass are listed, and are an error at the end.
//
// # Not promised
//
// Times depend on the machine, and the figures of a busy machine mean little. To judge a change, measure the command of
// before on the same machine: -command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/scenarios"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench has the data that all measurements use.
type bench struct {
	command string
	assets  binaries.Assets
	out     io.Writer
	// failed are the scenarios that did not pass.
	failed []string
}

// run parses the flags, runs the measurements and prints the figures.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	command := flags.String("command", "bin/admissiontest", "the command to measure")
	version := flags.String("k8s-version", "", "the Kubernetes version (default: "+binaries.DefaultVersion+")")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		return err
	}
	found, err := binaries.Ensure(ctx, binaries.Options{
		Version: *version, Progress: func(line string) { _, _ = fmt.Fprintln(out, line) },
	})
	if err != nil {
		return err
	}
	b := &bench{command: *command, assets: found, out: out}
	b.print("kube-apiserver %s, %d scenarios", found.Version, len(all))
	for _, measure := range []func(context.Context) error{b.loading, b.catalogue} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	if len(b.failed) > 0 {
		return fmt.Errorf("%d scenarios did not pass: %q", len(b.failed), b.failed)
	}
	return nil
}

// print prints a line.
func (b *bench) print(format string, arguments ...any) {
	_, _ = fmt.Fprintf(b.out, format+"\n", arguments...)
}

// figure prints one measurement.
func (b *bench) figure(name string, value float64, unit string) {
	b.print("  %-46s %9.3f %s", name, value, unit)
}
