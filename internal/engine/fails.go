package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// judgeStart notes the outcomes of scenarios whose API server must not start. Started is
// the target if the server started, and err is the reason if it did not. judgeStart returns an error
// that does not come from the API server itself, because such an error decides nothing.
func (r *run) judgeStart(ctx context.Context, g group, started target.Target, err error) error {
	want := g.profile.Fails
	var ended *target.NotStartedError
	switch {
	case err == nil:
		closing, cancel := processes.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		r.failAll(g, report.Mismatch{Path: "server", Expected: fmt.Sprintf("does not start, and its log contains %q", want), Actual: "it started"})
		return started.Close(closing)
	case !errors.As(err, &ended):
		return err
	}
	matches, err := scenario.FailsMatcher(want)
	if err != nil {
		r.finishAll(g.scenarios, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
		return nil
	}
	// klog writes an error as a quoted Go string (k8s.io/klog/v2).
	log := strings.ReplaceAll(ended.Log, `\"`, `"`)
	if !matches(log) {
		r.failAll(g, report.Mismatch{Path: "server.log", Expected: fmt.Sprintf("contains %q", want), Actual: lastLines(log)})
		return nil
	}
	r.finishAll(g.scenarios, report.Outcome{Verdict: framework.Pass})
	return nil
}

// notStarted ends the scenarios of a group whose API server ended by itself before it was ready: as unsupported
// if it does not know a feature gate, a flag or an admission plugin of the profile, and else as errors. It
// reports whether that is what the error says.
func (r *run) notStarted(g group, err error) bool {
	var ended *target.NotStartedError
	if g.profile == nil || !errors.As(err, &ended) {
		return false
	}
	outcome := report.Outcome{Verdict: framework.Errored, Reason: "the API server did not start with the flags, feature gates and files of this scenario: " + err.Error()}
	set, _ := json.Marshal(g.profile) // it was decoded from a file
	found := unknown.FindStringSubmatch(strings.ReplaceAll(ended.Log, `\"`, `"`))
	if found != nil && strings.Contains(string(set), found[1]+found[2]+found[3]) {
		outcome = report.Outcome{Verdict: framework.Unsupported, Reason: fmt.Sprintf("the API server does not know something that the server of this scenario sets: %s", found[0])}
	}
	r.finishAll(g.scenarios, outcome)
	return true
}

// unknown matches what an API server prints before it ends because it does not know a feature gate, a flag or an admission
// plugin (k8s.io/component-base/featuregate, github.com/spf13/pflag, k8s.io/kubernetes/pkg/kubeapiserver/options).
var unknown = regexp.MustCompile(`unrecognized feature gate: (\w+)|unknown flag: --([\w-]+)|admission-plugins plugin "([^"]+)" is unknown`)

// failAll notes that the scenarios of a group failed.
func (r *run) failAll(g group, m report.Mismatch) {
	r.finishAll(g.scenarios, report.Outcome{
		Verdict:  framework.Fail,
		Reason:   fmt.Sprintf("%s: expected that it %s, got %s", m.Path, m.Expected, report.FirstLine(fmt.Sprint(m.Actual))),
		Evidence: &report.Evidence{Action: "start the API server", Mismatches: []report.Mismatch{m}},
	})
}

// shownLines is the number of lines of a log that a report shows.
const shownLines = 8

// lastLines returns the last lines of a log, the last one first: it has the reason.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	lines = lines[max(0, len(lines)-shownLines):]
	out := make([]string, 0, len(lines))
	for i := len(lines) - 1; i >= 0; i-- {
		out = append(out, lines[i])
	}
	return strings.Join(out, "\n")
}
