// Command bench measures the suite and prints the figures beside their limits.
// `make bench` runs it; it is no part of the command that is shipped.
//
// Three measurements, each on an API server of its own:
//
//	catalogue  the whole catalogue as the command runs it
//	floor      a bare client that does work of the same size, and nothing else
//	subset     the behaviours that integration tests of kubernetes/kubernetes cover
//
// # Promise
//
// The catalogue is measured from outside, as a user meets it: the command is a
// process, its memory is that process's own. The floor is derived from the
// catalogue, so that it grows with it.
//
// # Not promised
//
// Figures of a machine that is busy with something else mean little. A limit that
// is exceeded is told and is not an error, unless -strict.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	envtest.DiscardLogs()
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is what all measurements need.
type bench struct {
	command string
	assets  assets.Assets
	all     []scenario.Scenario
	figures *figures
	// catalogueSeconds is what the catalogue took, for the ratio to the floor.
	catalogueSeconds float64
}

// run parses the flags, takes the measurements that were asked for and prints them.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	command := flags.String("command", "bin/admissiontest", "the command to measure")
	version := flags.String("k8s-version", "", "the Kubernetes version; empty is the default")
	strict := flags.Bool("strict", false, "end with an error when a limit is exceeded")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := scenario.Load(scenarios.FS)
	if err != nil {
		return err
	}
	found, err := assets.Ensure(ctx, assets.Options{
		Version: *version, Progress: func(line string) { _, _ = fmt.Fprintln(out, line) },
	})
	if err != nil {
		return err
	}
	b := &bench{command: *command, assets: found, all: all, figures: &figures{out: out}}
	b.figures.heading(fmt.Sprintf("kube-apiserver %s, %d scenarios", found.Version, len(all)))
	for _, measure := range []func(context.Context) error{b.loading, b.catalogue, b.floor, b.subset} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return b.figures.verdict(*strict)
}
