package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The verdicts about a mutant.
const (
	killed     = "killed"          // a scenario did not pass, twice
	notStarted = "did not start"   // the API server did not start, or ended by itself
	timedOut   = "timed out"       // the run took too long
	survived   = "survived"        // everything passed
	invalid    = "did not compile" // there is no such server
)

// isKill reports whether a verdict says that the catalogue notices the mutant.
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
	// first are the scenarios on the default server: they are the quickest.
	first []string
	limit time.Duration
}

// notPassedError is the error of a run in which not everything passed.
type notPassedError struct {
	verdict string
	by      []string
}

// Error names the scenarios.
func (e *notPassedError) Error() string { return e.verdict + " " + strings.Join(e.by, ", ") }

// all runs the catalogue on the kube-apiserver in a folder: first the scenarios on the default server,
// then all. A scenario that did not pass runs once more, on a new server, so that a busy machine kills no
// mutant. Nil means that all passed. The error is a notPassedError, or one of this program.
func (j *judge) all(ctx context.Context, assets string) error {
	for _, names := range [][]string{j.first, nil} {
		var failed *notPassedError
		err := j.run(ctx, assets, names)
		if !errors.As(err, &failed) {
			if err != nil {
				return err
			}
			continue
		}
		again := failed.by[:min(len(failed.by), 5)]
		if len(again) == 0 {
			return err // the server did not start, or the run took too long
		}
		if err := j.run(ctx, assets, again); err != nil {
			return err
		}
	}
	return nil
}

// run runs scenarios; none are all.
func (j *judge) run(ctx context.Context, assets string, names []string) error {
	report := filepath.Join(j.data, "run")
	if err := os.RemoveAll(report); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, j.limit)
	defer cancel()
	command := exec.CommandContext(limited, j.command, append([]string{"run", "--k8s-version", j.version, "--report", report}, names...)...)
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	said, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &notPassedError{verdict: timedOut}
	case !errors.As(err, &exit):
		return fmt.Errorf("run %s: %w", j.command, err)
	}
	by, readErr := notPassed(filepath.Join(report, "report.json"))
	switch {
	case readErr == nil && len(by) > 0:
		return &notPassedError{verdict: killed, by: by}
	case exit.ExitCode() == exitNotReached:
		return &notPassedError{verdict: notStarted}
	default:
		return fmt.Errorf("run %s: %w\n%s", j.command, errors.Join(err, readErr), said)
	}
}

// notPassed returns the scenarios of a report that ran and did not pass: those that failed, or else those
// that could not be decided.
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
