// Command bench measures the suite and prints the figures with their limits. `make bench` runs
// it. It is not part of a release.
//
// There are five measurements, each with its own API server, and one of a chain of plugins in the
// unit tier:
//
//	catalogue  the whole catalogue as the command runs it
//	observed   the same on API servers that record the calls of their plugins
//	floor      a bare client that does the same amount of work, and nothing else
//	chain      ten plugins in harness.NewChain, and the same ones in an API server's chain
//	subset     the behaviours that integration tests of kubernetes/kubernetes cover
//	watch      from a save to the verdict, with --watch
//
// # Promise
//
// The catalogue is measured as a user runs it: the command is a process, and its memory is that
// of the process. The work of the floor is computed from the catalogue, so it grows with it.
//
// # Not promised
//
// Times depend on the machine, so only ratios of times have limits, and memory. The figures of a busy machine
// mean little. An exceeded limit is reported; it is only an error with -strict.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/hack/workshop"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/scenarios"
)

func main() { workshop.Main("bench", run) }

// bench has the data that all measurements use.
type bench struct {
	command string
	assets  binaries.Assets
	all     []scenario.Scenario
	figures *figures
	// catalogueSeconds is the time of the catalogue, for the ratio to the floor.
	catalogueSeconds float64
}

// run parses the flags, runs the measurements and prints the figures.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	command := flags.String("command", "bin/admissiontest", "the command to measure")
	version := flags.String("k8s-version", "", "the Kubernetes version (default: "+binaries.DefaultVersion+")")
	strict := flags.Bool("strict", false, "return an error if a limit is exceeded")
	if err := workshop.Parse(flags, args); err != nil {
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
	b := &bench{command: *command, assets: found, all: all, figures: &figures{out: out}}
	b.figures.heading(fmt.Sprintf("kube-apiserver %s, %d scenarios", found.Version, len(all)))
	for _, measure := range []func(context.Context) error{b.loading, b.chain, b.catalogue, b.floor, b.subset, b.watch} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return b.figures.verdict(*strict)
}
