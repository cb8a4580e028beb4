package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/report"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultParallel is how many scenarios act at the same time unless Options say otherwise.
const DefaultParallel = 16

// DefaultPatience bounds the wait of a step unless Options say otherwise.
const DefaultPatience = 20 * time.Second

// closeLimit bounds the removal of what a run created, after an interruption too.
const closeLimit = 3 * time.Minute

// Target is what the engine needs of a framework.Target: to arrange scenarios in
// it, many at the same time, each under an ID of its own.
type Target interface {
	framework.Target
	// Run is the ID of the run, a part of every scenario's ID.
	Run() string
	// Open makes the place of a scenario: its namespace, of the name id.
	Open(ctx context.Context, id string) error
	// Put installs an object, in place of one of the same name.
	Put(ctx context.Context, id string, manifest map[string]any, scripts map[string]hook.Script) error
	// Remove deletes an object that Put installed.
	Remove(ctx context.Context, id string, gvk schema.GroupVersionKind, name string) error
	// Settle waits until the target acts on all that was put and removed before.
	Settle(ctx context.Context, manifests []map[string]any) error
	// Claim prepares a Request, so that what it creates is found again.
	Claim(id string, request framework.Request) framework.Request
	// Namespaced reports whether objects of a kind live in namespaces.
	Namespaced(gvk schema.GroupVersionKind) (bool, error)
	// SetScript sets the script of a webhook.
	SetScript(id, webhook string, script hook.Script) error
	// SetConversion says, before they are put, how custom resources are converted.
	SetConversion(id string, conversion hook.Conversion) error
	// Calls returns the webhook calls since Mark; HookError what went wrong in a Hook.
	Calls(id string) []framework.Call
	Mark(id string)
	HookError(id string) error
	// Audit returns the audit event of an answer.
	Audit(ctx context.Context, auditID string) (*framework.Audit, error)
	// Disarm removes what decides about requests; Close removes everything.
	Disarm(ctx context.Context, id string) error
	Close(ctx context.Context) error
	// Alive returns an error when the target does not answer any more.
	Alive(ctx context.Context) error
}

// ErrNoProfiles is returned by a Provider that cannot give a server profile.
var ErrNoProfiles = errors.New("this target cannot start an API server with flags of a scenario's choice; target envtest can")

// Provider starts targets.
type Provider interface {
	// Start returns a target for a server profile; nil is the default. A profile
	// that it cannot give is ErrNoProfiles.
	Start(ctx context.Context, profile *scenario.Server) (Target, error)
}

// Versioned is a Provider that knows the version of its API servers before it
// starts one, so that none is started for scenarios that hold only since a later
// one: its flags and feature gates might be unknown there.
type Versioned interface {
	// Version returns the API server's version, "v1.36.3".
	Version(ctx context.Context) (string, error)
}

// Options say what to run and where. Provider is required.
type Options struct {
	// Scenarios are the selected ones.
	Scenarios []scenario.Scenario
	// Provider starts the targets.
	Provider Provider
	// Parallel is how many scenarios act at the same time, and as many again of
	// those that mostly wait. 0 means DefaultParallel.
	Parallel int
	// Patience bounds the wait of a step for what the API server makes true in its
	// own time. 0 means DefaultPatience.
	Patience time.Duration
	// Endpoints say how webhooks under test are reached, by NAMESPACE/NAME of the
	// Service that their clientConfig names. See CheckEndpoints.
	Endpoints map[string]cluster.Endpoint
	// Skip are reasons to skip scenarios, by name: the operator's choice.
	Skip map[string]string
	// Progress is told of each thing that happens. Nil is told nothing.
	Progress Progress
	// Rerun returns the command that runs one scenario again, for reports.
	Rerun func(scenario.Scenario) string
}

// Progress is told what a run does. Its methods may be called by several
// goroutines at once.
type Progress interface {
	// Stage begins: "starting kube-apiserver", "waiting for the fence".
	Stage(text string)
	// Done tells the outcome of a scenario.
	Done(outcome report.Outcome)
}

// run is one execution of Run.
type run struct {
	options Options

	mu       sync.Mutex
	outcomes map[string]report.Outcome
	info     framework.TargetInfo
	timing   report.Timing
	// version is that of the API servers, where the provider knows it beforehand.
	version string
	// acting are the groups with a server profile whose scenarios are not through.
	acting sync.WaitGroup
}

// Run carries out the scenarios. The error is not nil when the run could not
// reach all of them: the target was not to be had or was lost, or ctx was
// cancelled. The report then says so in each outcome that was not reached.
func Run(ctx context.Context, options Options) (report.Report, error) {
	if options.Parallel <= 0 {
		options.Parallel = DefaultParallel
	}
	if options.Patience <= 0 {
		options.Patience = DefaultPatience
	}
	if options.Progress == nil {
		options.Progress = silent{}
	}
	began := time.Now()
	r := &run{options: options, outcomes: map[string]report.Outcome{}}
	err := r.groups(ctx, groups(options.Scenarios, options.Skip))
	r.timing.Total = time.Since(began).Seconds()
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(ctx.Err(), err)
	}
	return r.account(err), err
}

// check asks the provider whether the scenarios of a group can be run.
func (r *run) check(ctx context.Context, g group) error {
	checker, ok := r.options.Provider.(Checker)
	if !ok {
		return nil
	}
	return checker.Check(ctx, slices.DeleteFunc(slices.Clone(g.scenarios), func(s scenario.Scenario) bool {
		_, skipped := g.skip[s.Metadata.Name]
		return skipped
	}))
}

// finish notes the outcome of a scenario.
func (r *run) finish(s scenario.Scenario, outcome report.Outcome) {
	outcome.Name, outcome.Area, outcome.Level = s.Metadata.Name, s.Area, s.Spec.Level
	outcome.Requirement, outcome.Source, outcome.Behaviours = s.Spec.Requirement, s.Spec.Source, s.Spec.Behaviours
	outcome.File = s.File
	if r.options.Rerun != nil {
		outcome.Rerun = r.options.Rerun(s)
	}
	r.mu.Lock()
	r.outcomes[s.Metadata.Name] = outcome
	r.mu.Unlock()
	r.options.Progress.Done(outcome)
}

// account makes the report: one outcome for each scenario, in the order of names.
func (r *run) account(err error) report.Report {
	reason := report.NotReached
	if err != nil {
		reason += ": " + firstLine(err.Error())
	}
	for _, s := range r.options.Scenarios {
		if _, ok := r.outcomes[s.Metadata.Name]; !ok {
			r.finish(s, report.Outcome{Verdict: framework.Errored, Reason: reason})
		}
	}
	out := report.New(r.info)
	for _, outcome := range r.outcomes {
		out.Outcomes = append(out.Outcomes, outcome)
	}
	slices.SortFunc(out.Outcomes, func(a, b report.Outcome) int { return strings.Compare(a.Name, b.Name) })
	out.Summary = report.Count(out.Outcomes)
	out.Timing = r.timing
	if err != nil {
		out.Incomplete = firstLine(err.Error())
	}
	return out
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// silent is the Progress of nobody.
type silent struct{}

func (silent) Stage(string)        {}
func (silent) Done(report.Outcome) {}
