package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
)

// DefaultParallel is the default of Options.Parallel.
const DefaultParallel = 16

// DefaultPatience is the default of Options.Patience. The list of kinds that policies use, for
// instance, is up to 30 seconds old in kube-apiserver (k8s.io/apiserver/pkg/server/options/admission.go).
const DefaultPatience = 45 * time.Second

// closeLimit limits the removal of what a run created, after an interruption too. The
// targets themselves give up earlier if nothing more goes.
const closeLimit = 30 * time.Minute

// goneLimit is closeLimit for an API server that no longer responds.
const goneLimit = 5 * time.Second

// Options configure a run. Provider is required.
type Options struct {
	// Scenarios are the selected scenarios.
	Scenarios []scenario.Scenario
	// Provider starts the targets.
	Provider target.Provider
	// Parallel is the number of scenarios that act at the same time, besides those that mostly wait. 0 means
	// DefaultParallel. With 1, one scenario runs at a time, as on an API server without other clients on which webhooks
	// decide about more than they select.
	Parallel int
	// Patience limits the wait of a step for something that the API server does in its own
	// time. 0 means DefaultPatience.
	Patience time.Duration
	// Endpoints are the endpoints of the webhooks under test, by NAMESPACE/NAME of their
	// Service. See CheckEndpoints.
	Endpoints map[string]framework.Endpoint
	// Install is installed on each API server before the first scenario. Nil installs nothing.
	Install *shipped.Project
	// Skip has the scenarios that the operator skips: the reasons, by name.
	Skip map[string]string
	// KnownFailing has the scenarios that are known to fail: the reasons, by name. Such a
	// scenario passes if it fails, and fails if it passes: then it must be removed from
	// the list.
	KnownFailing map[string]string
	// ObservePlugins asks for API servers that record the calls of their admission plugins, for
	// timelines. Otherwise only those do on which a scenario expects such calls: it costs a tenth.
	ObservePlugins bool
	// Progress receives the stages and outcomes of the run. Nil discards them.
	Progress Progress
	// Results is called with the response to each request of a step, and the name of the scenario or case, by several
	// goroutines at the same time. Nil is not called.
	Results func(name string, result framework.Result)
	// Rerun returns the command that runs one scenario again, for reports. It can be nil.
	Rerun func(scenario.Scenario) string
}

// Progress receives what happens in a run. Its methods are called by several goroutines
// at the same time.
type Progress interface {
	// Stage is called at the beginning of a stage: "starting kube-apiserver".
	Stage(text string)
	// Done is called with the outcome of each scenario.
	Done(outcome report.Outcome)
}

// run is one execution of Run.
type run struct {
	options Options

	mu       sync.Mutex
	outcomes map[string]report.Outcome
	repeats  map[string]int  // how often each scenario was repeated
	drops    map[string]bool // whether the API server closed the connection instead of answering, the last time
	info     framework.TargetInfo
	// enabledPlugins are the enabled plugins of the default server. Nil if they are not known.
	enabledPlugins []string
	timing         report.Timing
	// strangers is what they did to the targets that are closed.
	strangers hook.Strangers
	// notSeen has the webhooks that the API server calls itself.
	notSeen expect.Unseen
	// cases has the last Case of each scenario and case, by its name.
	cases map[string]*execution.Case
	// pauses notices when this process is paused.
	pauses *processes.PauseWatch
	// version is the version of the API servers, if the provider knows it before the start.
	version string
	// noOwnServer has the scenarios that run alone and do not get their own server. They run
	// on the default server, after the others.
	noOwnServer []scenario.Scenario
}

// ErrFailFast is the cause of the end of a run that ends with the first failure. The scenarios that were not
// reached then are skipped.
var ErrFailFast = errors.New("--fail-fast: a scenario failed")

// Run runs the scenarios. The error is not nil if the run did not reach all of them: the
// target could not be started or was lost, or ctx was cancelled: then it is the cause. The report then has an
// outcome for each scenario that was not reached too.
func Run(ctx context.Context, options Options) (report.Report, error) {
	if options.Parallel <= 0 {
		options.Parallel = DefaultParallel
	}
	if options.Patience <= 0 {
		options.Patience = DefaultPatience
	}
	if options.Progress == nil {
		options.Progress = discard{}
	}
	began := time.Now()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	r := &run{options: options, outcomes: map[string]report.Outcome{}, repeats: map[string]int{}, drops: map[string]bool{}, cases: map[string]*execution.Case{}, notSeen: expect.Unseen{}, pauses: processes.WatchPauses(watching)}
	err := r.groups(ctx, groupScenarios(options.Scenarios, options.Skip, lanes{install: options.Install.Objects()}))
	r.timing.Total = time.Since(began).Seconds()
	if r.timing.Catalogue == 0 && r.info.Kind != "" { // no scenario ran on the default server
		r.timing.Catalogue = max(r.timing.Total-r.timing.TargetReady, 0)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return r.report(err), err
}

// finishAll notes the same outcome of all cases of scenarios.
func (r *run) finishAll(scenarios []scenario.Scenario, outcome report.Outcome) {
	for _, s := range scenario.Cases(scenarios) {
		r.finish(s, outcome)
	}
}

// finish notes the outcome of a scenario or case.
func (r *run) finish(s scenario.Scenario, outcome report.Outcome) {
	outcome.Name, outcome.Area, outcome.Level = s.Metadata.Name, s.Area, s.Spec.Level
	outcome.Requirement, outcome.Source, outcome.Behaviours = s.Spec.Requirement, s.Spec.Source, s.Spec.Behaviours
	outcome.File, outcome.Line = s.File, s.Line
	if r.options.Rerun != nil {
		outcome.Rerun = r.options.Rerun(s)
	}
	if outcome.Verdict == framework.Pass {
		outcome = r.withVersion(outcome)
	}
	if reason, known := r.options.KnownFailing[s.Metadata.Name]; known {
		outcome = outcome.WithKnownFailing(reason)
	}
	r.mu.Lock()
	c := r.cases[outcome.Name]
	r.mu.Unlock()
	// What a report does not show is hidden where a string is made of values: see package expect. The texts of errors are
	// left, in which a server, a webhook or a file repeats them.
	texts := redact.Text
	if c != nil { // otherwise the scenario was not read
		texts = c.Texts()
	}
	outcome = outcome.WithTexts(texts)
	r.mu.Lock()
	outcome.Repeated = r.repeats[s.Metadata.Name]
	r.outcomes[s.Metadata.Name] = outcome
	r.mu.Unlock()
	r.options.Progress.Done(outcome)
}

// withVersion returns an inconclusive outcome for a pass on a server whose version is not
// plausible.
func (r *run) withVersion(outcome report.Outcome) report.Outcome {
	r.mu.Lock()
	info := r.info
	r.mu.Unlock()
	if reason := report.ImplausibleVersion(info.ServerVersion); info.Kind != "" && reason != "" {
		outcome.Verdict, outcome.Reason = framework.Inconclusive, reason
	}
	return outcome
}

// report returns the report: one outcome for each scenario, in the order of the names.
// Err is why the run ended early, or nil.
func (r *run) report(err error) report.Report {
	reason, verdict := "not reached", framework.Errored
	if err != nil {
		reason += ": " + report.FirstLine(err.Error())
	}
	if errors.Is(err, ErrFailFast) {
		verdict = framework.Skipped
	}
	for _, s := range scenario.Cases(r.options.Scenarios) {
		if _, ok := r.outcomes[s.Metadata.Name]; !ok {
			r.finish(s, report.Outcome{Verdict: verdict, Reason: reason, NotReached: true})
		}
	}
	out := report.New(r.info)
	out.Target.EnabledPlugins = r.enabledPlugins
	for _, outcome := range r.outcomes {
		out.Outcomes = append(out.Outcomes, outcome)
	}
	slices.SortFunc(out.Outcomes, func(a, b report.Outcome) int { return strings.Compare(a.Name, b.Name) })
	out.Summary = report.Count(out.Outcomes)
	out.Timing = r.timing
	out.ForeignRequests = r.strangers.Requests
	out.NotSeen = r.notSeen.Report()
	if err != nil {
		out.Incomplete = report.FirstLine(redact.Text(err.Error()))
	}
	return out
}

// discard is a Progress that does nothing.
type discard struct{}

func (discard) Stage(string)        {}
func (discard) Done(report.Outcome) {}
