package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/scenarios"
	"github.com/admissiontest/admissiontest/suites/conformance/internal/plan"
)

// Plan is only for the adapter to Ginkgo: its types are internal. It loads and selects the scenarios, and starts
// nothing. Provider replaces the one that the Options describe, unless it is nil. Progress receives the lines of the
// provider, and one for each file or object that is left out; nil discards them.
func (o Options) Plan(provider target.Provider, progress func(string)) (*plan.Plan, error) {
	if progress == nil {
		progress = func(string) {}
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("use options: %w", err)
	}
	p := &plan.Plan{
		Engine: engine.Options{
			Provider: provider, Parallel: o.Target.Parallel, ObservePlugins: o.Target.ObservePlugins,
			Endpoints: o.Subject.Endpoints,
		},
		Implementation: o.Subject.Implementation, Dir: o.Report.Dir, Strict: o.Report.Strict, FailOnUnsupported: o.Report.FailOnUnsupported,
	}
	if provider == nil {
		p.Engine.Provider = o.provider(progress)
	}
	return p, o.choose(p, progress)
}

// choose loads the scenarios and sets what a plan has of them.
func (o Options) choose(p *plan.Plan, progress func(string)) (err error) {
	install, err := shipped.Load(o.Subject.Install...)
	if err != nil {
		return fmt.Errorf("use options: Subject.Install: %w", err)
	}
	for _, line := range install.LeftOut() {
		progress(line)
	}
	all, err := o.Selection.load(scenario.LoadOptions{PassedOver: progress, Installed: install.Webhooks(), AllowServerFlags: o.Target.AllowServerFlags})
	if err != nil {
		return err
	}
	p.Scenarios, err = engine.Select(all, o.Selection.Names, engine.Filter{Levels: o.Selection.Levels})
	if err != nil {
		return err
	}
	for _, s := range p.Scenarios {
		if s.ContractOf() != nil {
			return fmt.Errorf("%s:%d: %s has a contract, which conformance.Run does not check: give policy.Run of suites/policy its policies and samples, or use the command admissiontest run", s.File, s.Line, s.Metadata.Name)
		}
	}
	if err := engine.CheckEndpoints(p.Scenarios, o.Subject.Endpoints, install.Objects()...); err != nil {
		return err
	}
	p.Engine.Install = install
	if p.Engine.Skip, err = byName(all, o.Selection.Skip); err != nil {
		return fmt.Errorf("use options: Selection.Skip: %w", err)
	}
	if p.Engine.KnownFailing, err = byName(all, o.Report.KnownFailing); err != nil {
		return fmt.Errorf("use options: Report.KnownFailing: %w", err)
	}
	p.Tiers, err = plan.Tiers()
	return err
}

// check returns an error for options that cannot be combined or are not known.
func (o Options) check() error {
	t := o.Target
	running := t.Config != nil || t.Environment != nil
	switch {
	case t.Config != nil && t.Environment != nil:
		return errors.New("Target.Config and Target.Environment cannot be combined: each is an API server")
	case running && (t.Version != "" || t.BinaryAssetsDirectory != "" || t.ObservePlugins || len(o.Subject.Plugins) > 0):
		return errors.New("Target.Config and Target.Environment cannot be combined with Target.Version, Target.BinaryAssetsDirectory, Target.ObservePlugins and Subject.Plugins, which start an API server")
	case t.BinaryAssetsDirectory != "" && len(o.Subject.Plugins) > 0:
		return errors.New("Target.BinaryAssetsDirectory and Subject.Plugins cannot be combined: an API server with plugins is built")
	case !running && (t.Transport != "" || t.HookImage != ""):
		return errors.New("Target.Transport and HookImage need a Target.Config or a Target.Environment")
	case o.Selection.FS != nil && len(o.Selection.Paths) > 0:
		return errors.New("Selection.FS and Selection.Paths cannot be combined")
	}
	for _, level := range o.Selection.Levels {
		if !slices.Contains(framework.Levels(), level) {
			return fmt.Errorf("Selection.Levels has %q: want some of %q", level, framework.Levels())
		}
	}
	return nil
}

// provider returns the provider that the options describe.
func (o Options) provider(progress func(string)) target.Provider {
	t := o.Target
	transport := providers.Transport{Mode: t.Transport, HookImage: t.HookImage}
	if t.Environment != nil || t.Config != nil {
		return providers.RESTConfig{Config: t.Config, Environment: t.Environment, Transport: transport, Progress: progress}
	}
	return providers.NewEnvtest(providers.EnvtestOptions{
		Assets:         binaries.Options{Version: t.Version, Dir: t.BinaryAssetsDirectory, Plugins: o.Subject.Plugins},
		ObservePlugins: t.ObservePlugins, Progress: progress,
	})
}

// load reads the scenarios.
func (s Selection) load(options scenario.LoadOptions) ([]scenario.Scenario, error) {
	if len(s.Paths) == 0 {
		if options.FS = s.FS; s.FS == nil {
			options.FS = scenarios.FS
		}
	}
	all, err := scenario.Load(options, s.Paths...)
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
		names, err := engine.Match(all, argument)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out[name] = reasons[argument]
		}
	}
	return out, nil
}
