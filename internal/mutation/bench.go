package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// source builds a kube-apiserver from files that can be changed: an assets.Source.
type source interface {
	Build(ctx context.Context, dir string) (assets.Assets, error)
	Folder(module string) string
}

// bench builds mutants and has them judged.
type bench struct {
	source source
	judge  *judge
	work   string // the folder of everything
	server string // the folder of the kube-apiserver
	out    io.Writer
}

// openBench prepares the source of kube-apiserver.
func openBench(ctx context.Context, o options, all []scenario.Scenario, out io.Writer) (*bench, error) {
	work, err := os.MkdirTemp("", "admissiontest-mutation-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the source: %w", err)
	}
	say := func(line string) { _, _ = fmt.Fprintln(out, line) }
	source, err := assets.OpenSource(ctx, assets.Options{Version: o.version, Progress: say}, work, modules()...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	j := &judge{command: o.command, version: o.version, data: work, first: onDefaultServer(all), limit: time.Hour}
	return &bench{source: source, judge: j, work: work, server: filepath.Join(work, "server"), out: out}, nil
}

// close removes what openBench made.
func (b *bench) close() error { return os.RemoveAll(b.work) }

// modules returns the modules whose files are changed.
func modules() []string { return []string{"k8s.io/apiserver"} }

// onDefaultServer returns the names of the scenarios that need no server of their own.
func onDefaultServer(all []scenario.Scenario) []string {
	var names []string
	for _, s := range all {
		if s.Spec.Server == nil && s.Spec.Isolation == "" {
			names = append(names, s.Metadata.Name)
		}
	}
	return names
}

// folder returns the path of a file of a module.
func (b *bench) folder(file string) (string, error) {
	for _, module := range modules() {
		if rest, ok := strings.CutPrefix(file, module+"/"); ok {
			return filepath.Join(b.source.Folder(module), filepath.FromSlash(rest)), nil
		}
	}
	return "", fmt.Errorf("%s is in no module that is changed", file)
}

// measure judges mutants until n of them were built and judged, now or before.
func (b *bench) measure(ctx context.Context, sample []mutant, n int, kept *verdicts) error {
	began := time.Now()
	if _, err := b.source.Build(ctx, b.server); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.out, "running the catalogue on the unchanged server, which was built in %.0f s\n", time.Since(began).Seconds())
	began = time.Now()
	if err := b.judge.all(ctx, b.server); err != nil {
		return fmt.Errorf("the catalogue does not pass on the unchanged server: %w", err)
	}
	b.judge.limit = limitFactor*time.Since(began) + time.Minute
	_, _ = fmt.Fprintf(b.out, "it passed in %.0f s\n", time.Since(began).Seconds())
	for done, i := 0, 0; done < n && i < len(sample); i++ {
		verdict, known := kept.by[sample[i].id()]
		if !known {
			made, err := b.one(ctx, sample[i])
			if err != nil {
				return err
			}
			if err := kept.add(made); err != nil {
				return err
			}
			verdict = made
		}
		if verdict.Verdict == invalid {
			continue
		}
		if done++; !known {
			_, _ = fmt.Fprintf(b.out, "%d of %d, %.0f s: %s: %s %s\n", done, n, verdict.Seconds, verdict.id(), verdict.Verdict, strings.Join(verdict.By, ", "))
		}
	}
	return nil
}

// one builds and judges one mutant.
func (b *bench) one(ctx context.Context, m mutant) (made judged, err error) {
	began := time.Now()
	path, err := b.folder(m.File)
	if err != nil {
		return made, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return made, err
	}
	if err := os.WriteFile(path, m.apply(text), 0o600); err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, text, 0o600)) }()
	made = judged{mutant: m, Verdict: survived}
	_, err = b.source.Build(ctx, b.server)
	switch {
	case ctx.Err() != nil:
		return made, ctx.Err()
	case errors.Is(err, assets.ErrBuild):
		made.Verdict, err = invalid, nil
	case err != nil:
		return made, err
	default:
		var noticed *notPassedError
		if err = b.judge.all(ctx, b.server); errors.As(err, &noticed) {
			made.Verdict, made.By, err = noticed.verdict, noticed.by[:min(len(noticed.by), 3)], nil
		}
	}
	made.Seconds = time.Since(began).Round(100 * time.Millisecond).Seconds()
	return made, err
}
