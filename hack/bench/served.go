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
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Limits of runs on a server that is kept, in seconds.
const (
	limitServedWebhook = 0.4 // one scenario with a webhook, the whole process
	limitServedPolicy  = 1.6 // one with a policy: the API server reads policies once a second
	limitServedExtra   = 0.5 // the whole process, without the catalogue on the default server
)

const (
	// watchLimit limits the measurement of --watch.
	watchLimit = time.Minute
	// betweenSaves is the time after which a person saves again. After a quicker save, --watch waits
	// longer for the end of the burst.
	betweenSaves = 1500 * time.Millisecond
)

// The scenarios to measure: files, as the authors of scenarios give them. A name would load the
// catalogue too.
const (
	webhookScenario = "scenarios/order/phases.mutating-before-validating.yaml"
	policyScenario  = "scenarios/vap/audit-annotations.yaml"
)

// served measures runs on a server that "admissiontest serve" keeps.
func (b *bench) served(ctx context.Context) (err error) {
	b.figures.heading("runs on a server that is kept")
	m, err := b.execute(ctx, "serve", "--background")
	if err != nil {
		return err
	}
	defer func() {
		_, stopped := b.execute(context.WithoutCancel(ctx), "serve", "stop", key(m.stdout))
		err = errors.Join(err, stopped)
	}()
	run := func(names ...string) (seconds, extra float64, err error) {
		r, m, err := b.runCommand(ctx, names...)
		if err == nil && !r.Target.Served {
			err = errors.New("the run did not use the server that is kept")
		}
		return m.wall.Seconds(), m.wall.Seconds() - r.Timing.Catalogue, err
	}
	var webhooks, policies []float64
	for range 5 {
		// A run waits until the API server has forgotten the policies of the last one.
		for _, one := range []struct {
			name  string
			times *[]float64
		}{{webhookScenario, nil}, {webhookScenario, &webhooks}, {policyScenario, &policies}} {
			seconds, _, err := run(one.name)
			if err != nil {
				return err
			}
			if one.times != nil {
				*one.times = append(*one.times, seconds)
			}
		}
	}
	b.figures.atMost("a scenario with a webhook, whole process", median(webhooks), limitServedWebhook, "s")
	b.figures.atMost("a scenario with a policy, whole process", median(policies), limitServedPolicy, "s")
	if _, _, err := run(webhookScenario); err != nil {
		return err
	}
	var names []string
	for _, s := range defaultProfile(b.all) {
		if s.Spec.Isolation != scenario.IsolationNone { // each of these has its own server
			names = append(names, s.Metadata.Name)
		}
	}
	saved, err := b.watched(ctx, webhookScenario)
	if err != nil {
		return err
	}
	b.figures.atMost("the same with --watch, from save to verdict", saved, limitServedWebhook, "s")
	_, extra, err := run(names...)
	if err != nil {
		return err
	}
	b.figures.atMost("the catalogue, what the process takes besides", extra, limitServedExtra, "s")
	return nil
}

// key returns the key of a server, the last word that serve prints.
func key(stdout []byte) string {
	words := strings.Fields(string(stdout))
	return words[len(words)-1]
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
