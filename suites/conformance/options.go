package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/engine/provider"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

// Options say what to run and where. The zero value runs the whole catalogue of
// this module on an API server that envtest starts.
type Options struct {
	// Config reaches an API server that runs already, on this machine: webhooks are
	// served from this process at a loopback address.
	Config *rest.Config
	// Provider starts the API server, for all that Config cannot say. Give one of
	// them; with neither it is provider.NewEnvtest of its zero options.
	Provider engine.Provider
	// FS holds the scenarios. Nil is the catalogue of this module.
	FS fs.FS
	// Paths are files and folders with scenarios, on the disk, as scenario.LoadPaths
	// reads them, to run instead. Give FS or Paths.
	Paths []string
	// Endpoints say how webhooks under test are reached, by NAMESPACE/NAME of the
	// Service that their clientConfig names: a URL to call in its place, and the CA of
	// configurations that have none. A Service without one is called itself.
	Endpoints map[string]cluster.Endpoint
	// Select are names, areas or patterns as engine.Select reads them. Empty is all.
	Select []string
	// Levels are those to run. Empty is all.
	Levels []framework.Level
	// Skip are reasons to skip scenarios, by name, area or pattern.
	Skip map[string]string
	// Strict counts a SHOULD as a MUST.
	Strict bool
	// Parallel is how many scenarios act at the same time. 0 is engine.DefaultParallel.
	Parallel int
	// ReportDir, when set, is a folder that report.json and junit.xml are written to.
	ReportDir string
}

// plan is Options with everything resolved.
type plan struct {
	Options
	scenarios []scenario.Scenario
	skip      map[string]string
	tiers     map[string]string
}

// resolve loads and selects. It starts nothing.
func (o Options) resolve() (plan, error) {
	p := plan{Options: o}
	switch {
	case o.Config != nil && o.Provider != nil:
		return p, errors.New("use options: Config and Provider are both set: give the one that is meant")
	case o.Config != nil:
		p.Provider = provider.RESTConfig{Config: o.Config}
	case o.Provider == nil:
		p.Provider = provider.NewEnvtest(provider.EnvtestOptions{Progress: progress{}.Stage})
	}
	for _, level := range o.Levels {
		if !slices.Contains(framework.Levels(), level) {
			return p, fmt.Errorf("use options: Levels has %q: want some of %q", level, framework.Levels())
		}
	}
	all, err := o.load()
	if err != nil {
		return p, err
	}
	if p.scenarios, err = engine.Select(all, o.Select, engine.Filter{Levels: o.Levels}); err != nil {
		return p, err
	}
	if err := engine.CheckEndpoints(p.scenarios, o.Endpoints); err != nil {
		return p, err
	}
	if p.skip, err = skips(all, o.Skip); err != nil {
		return p, err
	}
	p.tiers, err = tiers()
	return p, err
}

// load reads the scenarios.
func (o Options) load() ([]scenario.Scenario, error) {
	var all []scenario.Scenario
	var err error
	switch {
	case o.FS != nil && len(o.Paths) > 0:
		return nil, errors.New("use options: FS and Paths are both set: give the one that is meant")
	case len(o.Paths) > 0:
		all, err = scenario.LoadPaths(o.Paths...)
	case o.FS != nil:
		all, err = scenario.Load(o.FS)
	default:
		all, err = scenario.Load(scenarios.FS)
	}
	if err != nil {
		return nil, fmt.Errorf("load scenarios: %w", err)
	}
	return all, nil
}

// skips returns the reasons by the names of scenarios. Where several match one
// scenario, the last in alphabetical order stands.
func skips(all []scenario.Scenario, reasons map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range slices.Sorted(maps.Keys(reasons)) {
		names, err := engine.Match(all, arg)
		if err != nil {
			return nil, fmt.Errorf("use options: Skip: %w", err)
		}
		for _, name := range names {
			out[name] = reasons[arg]
		}
	}
	return out, nil
}

// counts reports whether an outcome of a level can fail the suite.
func (p plan) counts(level framework.Level) bool {
	switch level {
	case framework.May:
		return false
	case framework.Should:
		return p.Strict
	default:
		return true
	}
}
