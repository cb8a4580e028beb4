package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

const (
	// watchLimit limits the measurement of --watch.
	watchLimit = time.Minute
	// betweenSaves is the time after which a person saves again. After a quicker save, the next API server can be
	// not ready yet.
	betweenSaves = 5 * time.Second
)

// watchedScenario has a webhook. It is a file, as the authors of scenarios give it: a name would load the catalogue too.
const watchedScenario = "scenarios/order/phases.mutating-before-validating.yaml"

// watch measures run --watch.
func (b *bench) watch(ctx context.Context) error {
	b.print("\nrun --watch")
	_, whole, err := b.runCommand(ctx, watchedScenario)
	if err != nil {
		return err
	}
	saved, err := b.watched(ctx, watchedScenario)
	if err != nil {
		return err
	}
	b.figure("run of one scenario, whole process", whole.wall.Seconds(), "s")
	b.figure("--watch, from save to verdict", saved, "s")
	b.figure("--watch / run", saved/whole.wall.Seconds(), "")
	return nil
}

// watched returns the time from a save of a scenario to its verdict, in "admissiontest run --watch".
func (b *bench) watched(ctx context.Context, name string) (seconds float64, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "admissiontest-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "watched.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	command := exec.CommandContext(ctx, b.command, "run", "--watch", path)
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+b.assets.Dir)
	stdout, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", b.command, err)
	}
	defer func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait() // the exit code is that of the last run
	}()
	var saves []float64
	var saved time.Time
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		switch words := strings.Fields(lines.Text()); {
		case len(words) > 0 && words[0] == string(framework.Pass) && !saved.IsZero():
			saves = append(saves, time.Since(saved).Seconds())
		case strings.HasPrefix(lines.Text(), "1 scenario:") && len(saves) < 5: // the end of a run
			pause := time.NewTimer(betweenSaves)
			select {
			case <-pause.C:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			text = append(text, '\n')
			saved = time.Now()
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return 0, err
			}
		case len(saves) == 5:
			return median(saves), nil
		}
	}
	return 0, fmt.Errorf("run --watch %s: it printed %d verdicts in %s, want 5", name, len(saves), watchLimit)
}
