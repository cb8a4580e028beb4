// Command proof measures what the catalogue proves about a kube-apiserver. It is not part of a release.
//
//	proof coverage  which statements of a kube-apiserver the catalogue runs: `make coverage`
//	proof mutation  how many faults of a kube-apiserver the catalogue notices: `make mutation`
//
// Coverage builds a kube-apiserver with coverage, runs the whole catalogue on it with every server profile,
// prints the shares, and writes docs/coverage.md.
//
// Mutation makes small changes (mutants) in Kubernetes' code for admission, in statements that the
// catalogue runs according to the profile of coverage. It builds one kube-apiserver with all
// mutants, and runs the catalogue with one mutant at a time. A mutant that no scenario notices is a
// survivor. The command prints each survivor with its change, and with the behaviours whose sources
// point to the changed file.
//
// # Promise
//
// A statement counts once, even if several servers ran it. The sample of mutants depends only on the seed, the
// Kubernetes version and the profile. A mutant is killed
// if the same scenario did not pass on two servers, if the API server did not start, or if the run
// took too long. The catalogue must first pass on the unchanged server. Verdicts are kept in the
// folder of the data, so a run that was stopped can continue.
//
// # Not promised
//
// If a statement ran, that does not mean that a scenario checks its effect. Whether a few
// statements run depends on timing. A survivor is not always a gap in the catalogue: the change may have no
// effect that a client can see. Such mutants are in equivalent.yaml, with the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

// run runs the measurement that the first argument names.
func run(ctx context.Context, args []string, out io.Writer) error {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "coverage":
		return runCoverage(ctx, args, out)
	case "mutation":
		return runMutation(ctx, args, out)
	}
	return fmt.Errorf("measure %q: want coverage or mutation", name)
}

// parseFlags parses arguments, of which all must be flags.
func parseFlags(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return err
}
