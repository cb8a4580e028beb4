package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The verdicts about a mutant.
const (
	killed     = "killed"          // the same scenario did not pass twice
	notStarted = "did not start"   // the API server did not start, or ended by itself
	timedOut   = "timed out"       // the run took too long
	survived   = "survived"        // everything passed
	invalid    = "did not compile" // the mutant does not compile, so there is no server to judge
)

// isKill reports whether a verdict means that the catalogue noticed the mutant.
func isKill(verdict string) bool {
	return verdict == killed || verdict == notStarted || verdict == timedOut
}

// judged is the verdict about one mutant.
type judged struct {
	mutant
	Verdict string `json:"verdict"`
	// By are the first scenarios that did not pass.
	By      []string `json:"by,omitempty"`
	Seconds float64  `json:"seconds"`
}

// exitNotReached is the exit code of a run whose API server did not start or ended.
const exitNotReached = 4

// judge runs the catalogue on API servers.
type judge struct {
	command, version, data string
	// stages are the names of the scenarios of two runs, the second after the first. limits are the
	// time limits of these runs.
	stages [2][]string
	limits [2]time.Duration
}

// The time limit of a run on a mutant is limitFactor times the time on the unchanged server, plus
// limitMore.
const (
	limitFactor = 4
	limitMore   = 20 * time.Second
)

// patience is the time limit of a step of a scenario. On the unchanged server, a step takes a
// second or two.
const patience = "12s"

// notPassedError is the error of a run in which not everything passed.
type notPassedError struct {
	verdict string
	by      []string
}

// Error names the scenarios.
func (e *notPassedError) Error() string { return e.verdict + " " + strings.Join(e.by, ", ") }

// unchanged runs the catalogue on the unchanged kube-apiserver, which must pass, and sets the limits.
func (j *judge) unchanged(ctx context.Context, assets string) error {
	for i, names := range j.stages {
		began := time.Now()
		if err := j.run(ctx, assets, names, time.Hour); err != nil {
			return err
		}
		j.limits[i] = limitFactor*time.Since(began) + limitMore
	}
	return nil
}

// all runs the catalogue on the kube-apiserver in a folder until a scenario does not pass twice.
// Nil means that the mutant survived. A notPassedError means that it was killed. Any other error is
// a failure of this program.
func (j *judge) all(ctx context.Context, assets string) error {
	for i := range j.stages {
		alarm, err := j.stage(ctx, assets, i, "--fail-fast")
		if alarm != nil && err == nil {
			err = j.again(ctx, assets, i, alarm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// again runs all scenarios of a stage again, if the scenarios of the alarm passed when they ran
// alone. A scenario of the alarm that does not pass again kills the mutant: some faults show only
// when many scenarios run together.
func (j *judge) again(ctx context.Context, assets string, number int, alarm []string) error {
	second, err := j.stage(ctx, assets, number)
	twice := slices.DeleteFunc(second, func(name string) bool { return !slices.Contains(alarm, name) })
	if err == nil && len(twice) > 0 {
		return &notPassedError{verdict: killed, by: twice}
	}
	return err
}

// stage runs the scenarios of a stage, again if the server did not start, ended, or took too long. alarm has the scenarios that did not pass. The first five of
// them run once more on a new server, so that a busy machine kills no mutant. If they pass then,
// the error is nil.
func (j *judge) stage(ctx context.Context, assets string, number int, flags ...string) (alarm []string, err error) {
	err = j.run(ctx, assets, j.stages[number], j.limits[number], flags...)
	var failed *notPassedError
	if errors.As(err, &failed) && len(failed.by) == 0 { // the server did not start or ended, or the run took too long
		err = j.run(ctx, assets, j.stages[number], j.limits[number], flags...)
	}
	if failed = nil; !errors.As(err, &failed) || len(failed.by) == 0 {
		return nil, err
	}
	return failed.by, j.run(ctx, assets, failed.by[:min(len(failed.by), 5)], j.limits[number])
}

// run runs scenarios, for a time that is limited.
func (j *judge) run(ctx context.Context, assets string, names []string, limit time.Duration, flags ...string) (err error) {
	report, err := os.MkdirTemp(j.data, "run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(report)) }()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(limited, j.command, slices.Concat([]string{"run", "--k8s-version", j.version, "--strict", "--patience", patience, "--report", report}, flags, names)...)
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	said, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &notPassedError{verdict: timedOut}
	case err != nil && !errors.As(err, &exit):
		return fmt.Errorf("run %s: %w", j.command, err)
	}
	by, readErr := notPassed(filepath.Join(report, "report.json"))
	switch {
	case readErr == nil && len(by) > 0:
		return &notPassedError{verdict: killed, by: by} // a MAY also kills the mutant, although it does not fail the run
	case readErr == nil && err == nil:
		return nil
	case exit != nil && exit.ExitCode() == exitNotReached:
		return &notPassedError{verdict: notStarted}
	default:
		return fmt.Errorf("run %s: %w\n%s", j.command, errors.Join(err, readErr), said)
	}
}

// notPassed returns the scenarios of a report that failed. If none failed, it returns those with
// the verdict error or inconclusive. It leaves out scenarios that were not reached.
func notPassed(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report struct {
		Outcomes []struct {
			Name, Verdict string
			NotReached    bool `json:"notReached"`
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	by := map[string][]string{}
	for _, o := range report.Outcomes {
		if !o.NotReached {
			by[o.Verdict] = append(by[o.Verdict], o.Name)
		}
	}
	if len(by["fail"]) > 0 {
		return by["fail"], nil
	}
	return append(by["error"], by["inconclusive"]...), nil
}
