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
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/scenarios"
)

// options are the flags of mutation.
type options struct {
	command, version, data, profile, document, files string
	n                                                int
	seed                                             uint64
	survivors                                        bool
}

func parseMutation(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.StringVar(&o.command, "command", "bin/admissiontest", "the command that runs the catalogue")
	flags.StringVar(&o.version, "k8s-version", binaries.DefaultVersion, "the Kubernetes version")
	flags.StringVar(&o.data, "data", "hack/proof/verdicts", "the folder for the verdicts, a file for each seed")
	flags.StringVar(&o.profile, "profile", "reports/coverage/profile.txt", "the profile that make coverage wrote")
	flags.StringVar(&o.document, "o", "", "the document to write, such as docs/mutation.md; empty to write none")
	flags.StringVar(&o.files, "files", "", "only mutants of files whose names begin with one of these, separated by commas, such as k8s.io/apiserver/pkg/admission/plugin/webhook")
	flags.IntVar(&o.n, "n", 20, "how many mutants to judge")
	flags.Uint64Var(&o.seed, "seed", 1, "the seed of the sample")
	flags.BoolVar(&o.survivors, "survivors", false, "judge the survivors of earlier runs without a reason again, after scenarios changed")
	return o, parseFlags(flags, args)
}

func runMutation(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseMutation(args)
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
	sample, err := o.sample(func(file string) (string, error) { return pathIn(b.source.folder, file) })
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
