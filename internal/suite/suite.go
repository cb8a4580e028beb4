// Package suite turns the options of the conformance suite into a plan and runs it. The
// packages suites/conformance and suites/conformance/ginkgo report the outcomes to their
// test frameworks.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/console"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/report/html"
	"github.com/admissiontest/admissiontest/internal/selection"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/scenarios"
)

// Options has the fields of conformance.Options, which documents them. One can be
// converted to the other.
type Options struct {
	Config            *rest.Config
	KubernetesVersion string
	AssetsDir         string
	Plugins           []binaries.Plugin
	ObservePlugins    bool
	Transport         string
	HookImage         string
	HookSources       []netip.Prefix
	HookAddress       string
	FS                fs.FS
	Paths             []string
	Install           []string
	Endpoints         map[string]framework.Endpoint
	AllowForeign      []string
	AllowServerFlags  []string
	Select            []string
	Levels            []framework.Level
	Skip              map[string]string
	KnownFailing      map[string]string
	Strict            bool
	FailOnUnsupported bool
	Parallel          int
	ReportDir         string
	Implementation    framework.Implementation
}

// Plan is the selected scenarios and where to run them.
type Plan struct {
	// Scenarios are the selected scenarios, in the order of their names.
	Scenarios []scenario.Scenario

	options      Options
	provider     target.Provider
	install      *shipped.Project
	skip         map[string]string
	knownFailing map[string]string
	tiers        map[string]string
}

// New loads and selects the scenarios. It starts nothing. Provider replaces the one that
// the options describe, unless it is nil. Progress receives the lines of the provider, and one for each file or
// object that is left out; nil discards them.
func New(options Options, provider target.Provider, progress func(string)) (*Plan, error) {
	p := &Plan{options: options, provider: provider}
	if progress == nil {
		progress = func(string) {}
	}
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("use options: %w", err)
	}
	if p.provider == nil {
		p.provider = options.provider(progress)
	}
	var err error
	if p.install, err = shipped.Load(options.Install...); err != nil {
		return nil, fmt.Errorf("use options: Install: %w", err)
	}
	for _, line := range p.install.LeftOut() {
		progress(line)
	}
	all, err := options.load(scenario.LoadOptions{PassedOver: progress, Installed: p.install.Webhooks(), AllowServerFlags: options.AllowServerFlags})
	if err != nil {
		return nil, err
	}
	if p.Scenarios, err = selection.Select(all, options.Select, selection.Filter{Levels: options.Levels}); err != nil {
		return nil, err
	}
	if err := engine.CheckEndpoints(p.Scenarios, options.Endpoints, p.install.Objects()...); err != nil {
		return nil, err
	}
	if p.skip, err = byName(all, options.Skip); err != nil {
		return nil, fmt.Errorf("use options: Skip: %w", err)
	}
	if p.knownFailing, err = byName(all, options.KnownFailing); err != nil {
		return nil, fmt.Errorf("use options: KnownFailing: %w", err)
	}
	p.tiers, err = tiers()
	return p, err
}

// check returns an error for options that cannot be combined or are not known.
func (o Options) check() error {
	switch {
	case o.Config != nil && (o.KubernetesVersion != "" || o.AssetsDir != "" || o.ObservePlugins || len(o.Plugins) > 0):
		return errors.New("option Config cannot be combined with KubernetesVersion, AssetsDir, Plugins and ObservePlugins, which start an API server")
	case o.AssetsDir != "" && len(o.Plugins) > 0:
		return errors.New("options AssetsDir and Plugins cannot be combined: an API server with plugins is built")
	case o.Config == nil && (o.Transport != "" || o.HookImage != "" || len(o.HookSources) > 0 || o.HookAddress != ""):
		return errors.New("options Transport, HookImage, HookSources and HookAddress need a Config")
	case o.FS != nil && len(o.Paths) > 0:
		return errors.New("options FS and Paths cannot be combined")
	}
	for _, level := range o.Levels {
		if !slices.Contains(framework.Levels(), level) {
			return fmt.Errorf("option Levels has %q: want some of %q", level, framework.Levels())
		}
	}
	return nil
}

// provider returns the provider that the options describe.
func (o Options) provider(progress func(string)) target.Provider {
	if o.Config != nil {
		return providers.RESTConfig{Config: o.Config, Progress: progress, Transport: providers.Transport{
			Mode: o.Transport, HookImage: o.HookImage, HookSources: o.HookSources, HookAddress: o.HookAddress,
		}}
	}
	return providers.NewEnvtest(providers.EnvtestOptions{
		Assets: binaries.Options{Version: o.KubernetesVersion, Dir: o.AssetsDir, Plugins: o.Plugins}, ObservePlugins: o.ObservePlugins, Progress: progress,
	})
}

// load reads the scenarios.
func (o Options) load(options scenario.LoadOptions) ([]scenario.Scenario, error) {
	if len(o.Paths) == 0 {
		if options.FS = o.FS; o.FS == nil {
			options.FS = scenarios.FS
		}
	}
	all, err := scenario.Load(options, o.Paths...)
	if err != nil {
		return nil, fmt.Errorf("load scenarios: %w", err)
	}
	return all, nil
}

// byName returns reasons by the names of scenarios. The keys are names, areas or
// patterns. If several match one scenario, the last in alphabetical order counts.
func byName(all []scenario.Scenario, reasons map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, argument := range slices.Sorted(maps.Keys(reasons)) {
		names, err := selection.Match(all, argument)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out[name] = reasons[argument]
		}
	}
	return out, nil
}

// Progress receives what happens in a run.
type Progress = engine.Progress

// Run runs the given scenarios and writes the report files. The error is why not all of
// them were run, or why the files could not be written. Rerun returns the command that
// runs one scenario again.
func (p *Plan) Run(ctx context.Context, chosen []scenario.Scenario, progress Progress, rerun func(scenario.Scenario) string) (report.Report, error) {
	result, err := engine.Run(ctx, engine.Options{
		Scenarios: chosen, Provider: p.provider, Parallel: p.options.Parallel, Skip: p.skip, KnownFailing: p.knownFailing,
		ObservePlugins: p.options.ObservePlugins, Install: p.install, Endpoints: p.options.Endpoints, AllowForeign: p.options.AllowForeign, Progress: progress, Rerun: rerun,
	})
	result.FailOnUnsupported, result.Strict = p.options.FailOnUnsupported, p.options.Strict
	if implementation := p.options.Implementation; !implementation.IsZero() {
		result.Implementation = &implementation
	}
	if p.options.ReportDir != "" {
		err = errors.Join(err, report.SaveDir(p.options.ReportDir, result), html.Save(p.options.ReportDir, result))
	}
	return result, err
}

// Result is how a test reports an outcome.
type Result int

// The results.
const (
	Passed Result = iota
	Failed
	Skipped
)

// Judge returns how a test reports the outcome of a scenario, and the text.
func (p *Plan) Judge(outcome report.Outcome) (Result, string) {
	result, text := p.judge(outcome)
	return result, console.Text(text)
}

func (p *Plan) judge(outcome report.Outcome) (Result, string) {
	if p.options.FailOnUnsupported && outcome.Verdict == framework.Unsupported {
		return Failed, report.FailureText(outcome)
	}
	switch outcome.Verdict {
	case framework.Pass:
		return Passed, ""
	case framework.Unsupported, framework.Skipped:
		return Skipped, fmt.Sprintf("%s: %s", outcome.Verdict, outcome.Reason)
	}
	text := report.FailureText(outcome)
	switch {
	case outcome.KnownFailing != "":
		return Skipped, "known to fail: " + outcome.KnownFailing + "\n" + text
	case outcome.Mistake: // of any level, as an error of the loader
		return Failed, text
	case outcome.Level == framework.May, outcome.Level == framework.Should && !p.options.Strict:
		return Skipped, fmt.Sprintf("%s, which does not count for a %s\n%s", outcome.Verdict, outcome.Level, text)
	default:
		return Failed, text
	}
}

// NotGreen returns why a suite must not succeed although no scenario fails it, or "":
// nothing passed. One unsupported or skipped scenario that the test framework selected
// from several is only skipped.
func (p *Plan) NotGreen(r report.Report) string {
	if len(r.Outcomes) == 1 && len(scenario.Cases(p.Scenarios)) > 1 {
		return ""
	}
	return console.Text(r.WhyNothing(p.options.Strict))
}

// Outcome returns the outcome of a scenario. It is an error outcome if the report has
// none.
func Outcome(r report.Report, s scenario.Scenario) report.Outcome {
	for _, outcome := range r.Outcomes {
		if outcome.Name == s.Metadata.Name {
			return outcome
		}
	}
	return report.Outcome{
		Name: s.Metadata.Name, Area: s.Area, Level: s.Spec.Level, Verdict: framework.Errored,
		Requirement: s.Spec.Requirement, Source: s.Spec.Source, File: s.File,
		Reason: "the engine did not run the scenario, although the test framework selected it: this is a bug of admissiontest",
	}
}
