package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// builder builds a kube-apiserver from files that can be changed: a server.
type builder interface {
	build(ctx context.Context, to string, flags ...string) error
	folder(module string) string
}

// bench builds a server with mutants and judges the mutants.
type bench struct {
	source builder
	judge  *judge
	work   string // the temporary folder of all files
	server string // the folder of the kube-apiserver
	out    io.Writer
}

// openBench prepares the source of kube-apiserver.
func openBench(ctx context.Context, o options, all []scenario.Scenario, out io.Writer) (*bench, error) {
	work, err := os.MkdirTemp("", "admissiontest-mutation-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the source: %w", err)
	}
	source, err := openServer(ctx, o.version, work, out)
	if err == nil {
		err = source.copyModules(ctx, filepath.Join(work, "copies"))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	b := &bench{source: source, work: work, server: filepath.Join(work, "server"), out: out}
	b.judge = &judge{command: o.command, version: o.version, data: work, stages: stages(all)}
	return b, nil
}

// close removes what openBench made.
func (b *bench) close() error { return os.RemoveAll(b.work) }

// stages returns the names of the scenarios on the default server, which are the fastest, and the
// names of the other scenarios.
func stages(all []scenario.Scenario) [2][]string {
	var names [2][]string
	for _, s := range all {
		at := 0
		if s.Spec.Server != nil || s.Spec.Isolation != "" {
			at = 1
		}
		names[at] = append(names[at], s.Metadata.Name)
	}
	return names
}

// measure judges mutants until n mutants that compile have a verdict, from this run or an earlier
// run.
func (b *bench) measure(ctx context.Context, sample []mutant, n int, kept *verdicts) error {
	began := time.Now()
	todo, err := b.build(ctx, sample, n, kept)
	if err != nil || len(todo) == 0 {
		return err
	}
	_, _ = fmt.Fprintf(b.out, "built a server with %d mutants in %.0f s; running the catalogue without them\n", len(todo), time.Since(began).Seconds())
	began = time.Now()
	if err := errors.Join(selectMutant(b.server, 0), b.judge.unchanged(ctx, b.server)); err != nil {
		return fmt.Errorf("the catalogue does not pass on the unchanged server: %w", err)
	}
	_, _ = fmt.Fprintf(b.out, "it passed in %.0f s\n", time.Since(began).Seconds())
	return b.judgeAll(ctx, sample, todo, kept)
}

// workers is how many mutants are judged at the same time. Several fit on one machine, because a
// run mostly waits.
const workers = 2

// judgeAll judges mutants. Each worker has its own copy of the server, because the file that
// selects the mutant is in the folder of the server.
func (b *bench) judgeAll(ctx context.Context, sample []mutant, todo []int, kept *verdicts) error {
	numbers := make(chan int, len(todo))
	for _, number := range todo {
		numbers <- number
	}
	close(numbers)
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	done := 0
	for i := range workers {
		group.Go(func() error {
			server := fmt.Sprintf("%s-%d", b.server, i)
			if err := os.CopyFS(server, os.DirFS(b.server)); err != nil {
				return fmt.Errorf("copy the server: %w", err)
			}
			for number := range numbers {
				made, err := b.one(ctx, server, number, sample[number-1])
				if err != nil {
					return err
				}
				mu.Lock()
				done++
				_, _ = fmt.Fprintf(b.out, "%d of %d, %.0f s: %s: %s %s\n", done, len(todo), made.Seconds, made.id(), made.Verdict, strings.Join(made.By, ", "))
				err = kept.add(made)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// build takes the first n mutants of the sample that compile, and builds a server with those that
// have no verdict yet. It returns their numbers: their places in the sample, from 1. Mutants that
// do not compile get the verdict invalid.
func (b *bench) build(ctx context.Context, sample []mutant, n int, kept *verdicts) ([]int, error) {
	original := map[string][]byte{}
	for {
		todo := kept.todo(sample, n)
		if len(todo) == 0 {
			return nil, nil
		}
		if err := b.write(sample, todo, original); err != nil {
			return nil, err
		}
		err := b.source.build(ctx, b.server)
		if err == nil {
			return todo, nil
		}
		wrong := notCompiled(err.Error())
		if len(wrong) == 0 {
			return nil, err
		}
		for _, number := range wrong {
			if !slices.Contains(todo, number) {
				return nil, fmt.Errorf("mutant %d does not compile, but is not built: %w", number, err)
			}
			if err := kept.add(judged{mutant: sample[number-1], Verdict: invalid}); err != nil {
				return nil, err
			}
		}
		_, _ = fmt.Fprintf(b.out, "%d mutants do not compile; others take their place\n", len(wrong))
	}
}

// write writes the files with mutants, and restores files that no longer have one. It adds the
// original text of each changed file to original.
func (b *bench) write(sample []mutant, numbers []int, original map[string][]byte) error {
	byFile := map[string]map[int]mutant{}
	for file := range original {
		byFile[file] = nil
	}
	for _, number := range numbers {
		m := sample[number-1]
		if byFile[m.File] == nil {
			byFile[m.File] = map[int]mutant{}
		}
		byFile[m.File][number] = m
	}
	for file, mutants := range byFile {
		path, err := pathIn(b.source.folder, file)
		if err != nil {
			return err
		}
		if original[file] == nil {
			if original[file], err = os.ReadFile(path); err != nil {
				return err
			}
		}
		text := original[file]
		if len(mutants) > 0 {
			if text, err = addCopies(file, text, mutants); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return writeSwitch(b.source.folder(switchModule))
}

// one selects a mutant of a server and judges it.
func (b *bench) one(ctx context.Context, server string, number int, m mutant) (judged, error) {
	began := time.Now()
	made := judged{mutant: m, Verdict: survived}
	if err := selectMutant(server, number); err != nil {
		return made, err
	}
	err := b.judge.all(ctx, server)
	var noticed *notPassedError
	if errors.As(err, &noticed) {
		made.Verdict, made.By, err = noticed.verdict, noticed.by[:min(len(noticed.by), 3)], nil
	}
	made.Seconds = time.Since(began).Round(100 * time.Millisecond).Seconds()
	return made, err
}
