// Command proof measures what the catalogue proves about a kube-apiserver. It is not part of a release.
//
//	proof coverage  which statements of a kube-apiserver the catalogue runs: `make coverage`
//	proof mutation  how many faults of a kube-apiserver the catalogue notices: `make mutation`
//
// Coverage builds a kube-apiserver with coverage, runs the whole catalogue on it with every server profile, and
// writes docs/coverage.md.
//
// Mutation makes small changes (mutants) in Kubernetes' code for admission, in statements that the catalogue runs
// according to the profile of coverage. It builds one kube-apiserver with all mutants, and runs the catalogue with
// one mutant at a time. A mutant that no scenario notices is a survivor. It writes docs/mutation.md.
//
// # Promise
//
// A statement counts once, even if several servers ran it. The sample of mutants depends only on the seed, the
// Kubernetes version and the profile. A mutant is killed if two runs in turn do not pass. The catalogue must first
// pass on the server without a mutant. Verdicts are kept in the folder of the data, so a run that was stopped can
// continue.
//
// # Not promised
//
// If a statement ran, that does not mean that a scenario checks its effect. Whether a few statements run depends on
// timing. A survivor is not always a gap in the catalogue: the change may have no effect that a client can see. A
// person writes that as the reason of its verdict. A fault that shows only while many scenarios run together is a
// survivor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
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

// options are the flags: some are for mutation only.
type options struct {
	command, version, profile, verdicts, files string
	n                                          int
	seed                                       uint64
}

// run runs the measurement that the first argument names.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	measure, ok := map[string]func(options, context.Context, server, io.Writer) error{"coverage": options.coverage, "mutation": options.mutation}[name]
	if !ok {
		return fmt.Errorf("measure %q: want coverage or mutation", name)
	}
	var o options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&o.command, "command", "bin/admissiontest", "the command that runs the catalogue")
	flags.StringVar(&o.version, "k8s-version", binaries.DefaultVersion, "the Kubernetes version")
	flags.StringVar(&o.profile, "profile", "reports/coverage.txt", "the profile of coverage, which mutation reads")
	flags.StringVar(&o.verdicts, "verdicts", "hack/proof/verdicts", "mutation: the folder of the verdicts, which has a file for each seed")
	flags.StringVar(&o.files, "files", "", "mutation: only files whose names begin so, such as k8s.io/apiserver/pkg/admission/plugin/webhook")
	flags.IntVar(&o.n, "n", 20, "mutation: how many mutants to judge")
	flags.Uint64Var(&o.seed, "seed", 100, "mutation: the seed of the sample")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	work, err := os.MkdirTemp("", "admissiontest-proof-")
	if err != nil {
		return fmt.Errorf("make a folder for the source: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	s, err := openServer(ctx, o.version, work, out)
	if err != nil {
		return err
	}
	return measure(o, ctx, s, out)
}
