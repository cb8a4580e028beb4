package provider

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// EnvtestOptions say which API server to start. The zero value is the default
// version, from wherever it is found or else built.
type EnvtestOptions struct {
	// Assets say which binaries, and from where.
	Assets assets.Options
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)
}

// Envtest starts API servers on this machine. It gives every server profile.
type Envtest struct {
	options EnvtestOptions

	mu    sync.Mutex
	found *assets.Assets
}

// NewEnvtest returns a provider that does nothing before the first Start.
func NewEnvtest(options EnvtestOptions) *Envtest {
	if options.Progress != nil && options.Assets.Progress == nil {
		options.Assets.Progress = options.Progress
	}
	return &Envtest{options: options}
}

// Start gets the binaries, which the first time can mean to build them, and
// starts an API server. Errors are those of assets.Ensure and of the start.
func (e *Envtest) Start(ctx context.Context, profile *scenario.Server) (engine.Target, error) {
	binaries, err := e.assets(ctx)
	if err != nil {
		return nil, err
	}
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	run := cluster.NewRunID()
	options := envtest.Options{Assets: binaries, Profile: credentials(hooks.Port())}
	own := profile != nil && profile.Flags["admission-control-config-file"] != ""
	if profile != nil {
		maps.Copy(options.Profile.Flags, profile.Flags)
		for name, content := range profile.Files {
			options.Profile.Files[name] = strings.NewReplacer(
				"$(hooks.port)", strconv.Itoa(hooks.Port()), "$(id)", engine.ScenarioID(run, 1)).Replace(content)
		}
		options.Profile.FeatureGates = profile.FeatureGates
	}
	server, err := envtest.Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	target, err := cluster.New(ctx, cluster.Options{
		Config: server.Config, Kind: framework.TargetEnvtest, Audit: server.Audit, Run: run, Hooks: hooks, Credentials: !own, HookService: true,
		Disposable: true, Progress: e.options.Progress,
	})
	if err != nil {
		return nil, errors.Join(err, server.Stop(), hooks.Close())
	}
	return &served{Target: target, server: server, hooks: hooks}, nil
}

// Version returns the version of the API servers that Start starts. Errors are
// those of assets.Ensure.
func (e *Envtest) Version(ctx context.Context) (string, error) {
	binaries, err := e.assets(ctx)
	if err != nil {
		return "", err
	}
	return "v" + strings.TrimPrefix(binaries.Version, "v"), nil
}

// assets finds or makes the binaries once; an error is not remembered.
func (e *Envtest) assets(ctx context.Context) (assets.Assets, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found == nil {
		found, err := assets.Ensure(ctx, e.options.Assets)
		if err != nil {
			return found, err
		}
		e.found = &found
	}
	return *e.found, nil
}

// served is a target whose API server ends with it.
type served struct {
	*cluster.Target
	server *envtest.Server
	hooks  *hook.Server
}

// Close ends the target, its server and its Hooks.
func (s *served) Close(ctx context.Context) error {
	return errors.Join(s.Target.Close(ctx), s.server.Stop(), s.hooks.Close())
}
