// Command mutation measures how many faults of a kube-apiserver the catalogue notices. `make mutation` runs
// it. It is not part of a release.
//
// It makes small changes (mutants) in Kubernetes' code for admission, in statements that the
// catalogue runs according to the profile of `make coverage`. It builds one kube-apiserver with all
// mutants, and runs the catalogue with one mutant at a time. A mutant that no scenario notices is a
// survivor. The command prints each survivor with its change, and with the behaviours whose sources
// point to the changed file.
//
// # Promise
//
// The sample depends only on the seed, the Kubernetes version and the profile. A mutant is killed
// if the same scenario did not pass on two servers, if the API server did not start, or if the run
// took too long. The catalogue must first pass on the unchanged server. Verdicts are kept in the
// folder of the data, so a run that was stopped can continue.
//
// # Not promised
//
// A survivor is not always a gap in the catalogue: the change may have no effect that a client can
// see. Such mutants are in equivalent.yaml, with the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/hack/workshop"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/scenarios"
)

func main() { workshop.Main("mutation", run) }

// options are the flags.
type options struct {
	command, version, data, profile, document, files, newSince string
	n                                                          int
	seed                                                       uint64
	survivors                                                  bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.StringVar(&o.command, "command", "bin/admissiontest", "the command that runs the catalogue")
	flags.StringVar(&o.version, "k8s-version", binaries.DefaultVersion, "the Kubernetes version")
	flags.StringVar(&o.data, "data", "hack/mutation/verdicts", "the folder for the verdicts, a file for each seed")
	flags.StringVar(&o.profile, "profile", "reports/coverage/profile.txt", "the profile that make coverage wrote")
	flags.StringVar(&o.document, "o", "", "the document to write, such as docs/mutation.md; empty to write none")
	flags.StringVar(&o.files, "files", "", "only mutants of files whose names begin with one of these, separated by commas, such as k8s.io/apiserver/pkg/admission/plugin/webhook")
	flags.StringVar(&o.newSince, "new-since", "", "only mutants of lines that this earlier Kubernetes version does not have, such as 1.36.3")
	flags.IntVar(&o.n, "n", 20, "how many mutants to judge")
	flags.Uint64Var(&o.seed, "seed", 1, "the seed of the sample")
	flags.BoolVar(&o.survivors, "survivors", false, "judge the survivors of earlier runs without a reason again, after scenarios changed")
	return o, workshop.Parse(flags, args)
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.data, err = filepath.Abs(o.data); err != nil {
		return fmt.Errorf("find the folder of the data: %w", err)
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		return err
	}
	b, err := openBench(ctx, o, all, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	sample, err := o.sample(b.folder, b.older)
	if err != nil {
		return err
	}
	reasons, err := equivalent()
	if err != nil {
		return err
	}
	kept, err := openVerdicts(filepath.Join(o.data, fmt.Sprintf("seed-%d.jsonl", o.seed)), func(id string) bool {
		return o.survivors && reasons[id] == ""
	})
	if err != nil {
		return err
	}
	if err := errors.Join(b.measure(ctx, sample, o.n, kept), kept.close()); err != nil {
		return err
	}
	s := summary{version: o.version, seed: o.seed, judged: kept.of(sample, o.n), reasons: reasons, scenarios: all}
	if s.others, err = ofOtherSeeds(o.data, o.seed); err != nil {
		return err
	}
	if err := s.print(out); err != nil || o.document == "" {
		return err
	}
	return s.write(o.document, time.Now())
}
