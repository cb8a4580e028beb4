package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/cover"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// mutation judges mutants, and writes the document.
func (o options) mutation(ctx context.Context, s server, out io.Writer) error {
	if err := s.vendor(ctx); err != nil {
		return err
	}
	sample, err := o.sample(s)
	if err != nil {
		return err
	}
	verdicts, err := readVerdicts(o.verdicts)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, one := range verdicts {
		known[one.id()] = known[one.id()] || one.Seed == o.seed && one.Kubernetes == o.version
	}
	var numbers []int
	for i, m := range sample[:min(o.n, len(sample))] {
		if !known[m.id()] {
			numbers = append(numbers, i+1)
		}
	}
	if err := insert(s, sample, numbers); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := o.judge(ctx, judge{command: o.command, version: o.version, assets: s.folder}, sample, numbers, out); err != nil {
		return err
	}
	if verdicts, err = readVerdicts(o.verdicts); err != nil {
		return err
	}
	return os.WriteFile(mutationDocument, mutationText(verdicts), 0o644)
}

// sample returns all mutants in an order that depends only on the seed and the mutants. If there are more or fewer
// mutants, because scenarios run other statements, the order of the others does not change.
func (o options) sample(s server) ([]mutant, error) {
	blocks, err := readProfile(o.profile)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for file := range blocks {
		if !strings.HasPrefix(file, o.files) {
			continue
		}
		text, err := os.ReadFile(s.source(file))
		if err != nil {
			return nil, err
		}
		found, _, err := mutants(file, text, func(p token.Position) bool { return ran(blocks[file], p) })
		if err != nil {
			return nil, fmt.Errorf("make mutants of %s: %w", file, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutant of %q: no statement of these files ran in %s", o.files, o.profile)
	}
	slices.SortFunc(all, func(a, b mutant) int {
		first, second := sha256.Sum256(fmt.Appendf(nil, "%d %s", o.seed, a.id())), sha256.Sum256(fmt.Appendf(nil, "%d %s", o.seed, b.id()))
		return slices.Compare(first[:], second[:])
	})
	return all, nil
}

// ran reports whether a statement at a position ran.
func ran(blocks []cover.ProfileBlock, p token.Position) bool {
	return slices.ContainsFunc(blocks, func(b cover.ProfileBlock) bool {
		begun := b.StartLine < p.Line || b.StartLine == p.Line && b.StartCol <= p.Column
		ended := b.EndLine < p.Line || b.EndLine == p.Line && b.EndCol <= p.Column
		return b.Count > 0 && begun && !ended
	})
}

// insert writes mutants into the source of a server.
func insert(s server, sample []mutant, numbers []int) error {
	files := map[string]bool{}
	for _, number := range numbers {
		files[sample[number-1].File] = true
	}
	for file := range maps.Keys(files) {
		text, err := os.ReadFile(s.source(file))
		if err != nil {
			return err
		}
		// The order in the file, outer ones first, is that in which they are found.
		found, name, err := mutants(file, text, func(token.Position) bool { return true })
		if err != nil {
			return err
		}
		place := map[string]int{}
		for i, m := range found {
			place[m.id()] = i
		}
		ours := slices.DeleteFunc(slices.Clone(numbers), func(number int) bool { return sample[number-1].File != file })
		slices.SortFunc(ours, func(a, b int) int { return place[sample[a-1].id()] - place[sample[b-1].id()] })
		selected := filepath.Join(filepath.Dir(s.source(file)), selectedFile)
		if err := errors.Join(
			os.WriteFile(s.source(file), withMutants(text, ours, sample), 0o600),
			os.WriteFile(selected, fmt.Appendf(nil, selectedText, name), 0o600),
		); err != nil {
			return err
		}
	}
	return nil
}

// workers is how many mutants are judged at the same time. A run mostly waits.
const workers = 2

// judge judges mutants, and adds each verdict to the file of the seed.
func (o options) judge(ctx context.Context, j judge, sample []mutant, numbers []int, out io.Writer) error {
	_, _ = fmt.Fprintf(out, "running the catalogue without the %d mutants of the server\n", len(numbers))
	began := time.Now()
	j.limit = time.Hour
	if by, err := j.twice(ctx, 0); err != nil || len(by) > 0 {
		return errors.Join(err, fmt.Errorf("the catalogue does not pass on the server without a mutant: %q", by))
	}
	j.limit = 4*time.Since(began) + 20*time.Second
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var mu sync.Mutex
	for _, number := range numbers {
		group.Go(func() error {
			by, err := j.twice(ctx, number)
			if err != nil {
				return err
			}
			one := verdict{mutant: sample[number-1], By: by, Seed: o.seed, Kubernetes: o.version}
			mu.Lock()
			defer mu.Unlock()
			_, _ = fmt.Fprintf(out, "%s: noticed by %q\n", one.id(), by)
			return one.append(o.verdicts)
		})
	}
	return group.Wait()
}

// judge runs the catalogue on API servers.
type judge struct {
	command, version, assets string
	limit                    time.Duration // of one run
}

// twice returns the first scenarios, or the reason, because of which two runs in turn did not pass with a mutant; 0 is
// none. The second runs only what failed in the first. They run on a copy of the server, in which the mutant is
// selected.
func (j judge) twice(ctx context.Context, number int) (by []string, err error) {
	server := fmt.Sprintf("%s-%d", j.assets, number)
	defer func() { err = errors.Join(err, os.RemoveAll(server)) }()
	if err := os.CopyFS(server, os.DirFS(j.assets)); err != nil {
		return nil, fmt.Errorf("copy the server: %w", err)
	}
	if err := os.WriteFile(filepath.Join(server, numberFile), fmt.Append(nil, number), 0o600); err != nil {
		return nil, err
	}
	by, err = j.run(ctx, server, "--fail-fast")
	if err != nil || len(by) == 0 {
		return nil, err
	}
	by = by[:min(len(by), 3)]
	if strings.HasPrefix(by[0], "the ") {
		return j.run(ctx, server, "--fail-fast")
	}
	return j.run(ctx, server, by...)
}

// run runs scenarios on a server, for a time that is limited, and returns those that did not pass, or why none did.
func (j judge) run(ctx context.Context, server string, args ...string) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, j.limit)
	defer cancel()
	// A step of a scenario takes a second or two on the server without a mutant.
	command := exec.CommandContext(limited, j.command, append([]string{"run", "--k8s-version", j.version, "--strict", "--patience", "12s", "-o", "json"}, args...)...)
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+server)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	said, err := command.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if limited.Err() != nil {
		return []string{"the time limit"}, nil
	}
	var r report.Report
	if wrong := json.Unmarshal(said, &r); wrong == nil {
		if by := notPassed(r); len(by) > 0 || err == nil {
			return by, nil
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 4 { // the API server did not start, or ended
			return []string{"the start of the API server"}, nil
		}
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return nil, fmt.Errorf("run %s: %w", j.command, err)
}

// notPassed returns the scenarios of a report that did not pass, without those that were not reached. What failed
// comes first.
func notPassed(r report.Report) []string {
	var failed, others []string
	for _, outcome := range r.Outcomes {
		switch {
		case outcome.NotReached:
		case outcome.Verdict == framework.Fail:
			failed = append(failed, outcome.Name)
		case outcome.Verdict == framework.Errored || outcome.Verdict == framework.Inconclusive:
			others = append(others, outcome.Name)
		}
	}
	return append(failed, others...)
}
