package providers

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
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/port"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/served"
	"github.com/admissiontest/admissiontest/internal/target"
)

// EnvtestOptions configure Envtest. The zero value means the default version of
// Kubernetes, found on this machine or built.
type EnvtestOptions struct {
	// Assets says which binaries to use, and where to get them.
	Assets assets.Options
	// ObservePlugins is true if the servers must be able to record the calls of their admission
	// plugins: otherwise Start fails. If it is false, a server records them if it can and
	// target.StartOptions ask for it.
	ObservePlugins bool
	// Served returns a Session on a default server that is kept for several runs, which runs the
	// programs. If it returns nil, or an error, Start starts a server. Nil always does.
	Served func(context.Context, assets.Assets) (*served.Session, error)
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Envtest starts API servers on this machine, with any server profile.
type Envtest struct {
	options EnvtestOptions

	mu      sync.Mutex
	found   *assets.Assets
	rebuilt bool // found is what Ensure found when asked for a server that records calls
}

// NewEnvtest returns a provider. It does nothing before the first call of Start or
// Version.
func NewEnvtest(options EnvtestOptions) *Envtest {
	if options.Progress != nil && options.Assets.Progress == nil {
		options.Assets.Progress = options.Progress
	}
	return &Envtest{options: options}
}

// Check returns a scenario.Error for each kind that seems to be misspelt, if the servers have the default version
// of Kubernetes, whose kinds are known.
func (e *Envtest) Check(_ context.Context, scenarios []scenario.Scenario) error {
	if version := e.options.Assets.Version; version != "" && version != assets.DefaultVersion {
		return nil
	}
	return misspeltKinds(scenarios)
}

// Start gets the binaries, which can mean building them, and starts an API server. The
// errors are those of assets.Ensure and of the start.
func (e *Envtest) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	binaries, err := e.assets(ctx, e.options.ObservePlugins || options.ObservePlugins)
	if err != nil {
		return nil, err
	}
	observe := e.options.ObservePlugins || options.ObservePlugins && binaries.ObservesPlugins
	if options.Profile == nil && e.options.Served != nil {
		if opened, err := e.onServed(ctx, options, binaries, observe); err == nil && opened != nil {
			return opened, nil
		} else if err != nil {
			e.progress("starting another API server: the one that is kept for several runs cannot be used: " + report.FirstLine(err.Error()))
		}
	}
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	run := cluster.NewRunID()
	profile, ownConfiguration := e.profile(options.Profile, run, hooks.Address().Port)
	server, err := envtest.Start(ctx, envtest.Options{Assets: binaries, Profile: profile, ObservePlugins: observe})
	if err != nil {
		return nil, errors.Join(notStarted(err), hooks.Close())
	}
	started, err := open(ctx, server, cluster.Options{
		Config: server.Config, Kind: framework.TargetEnvtest, Audit: server.Audit, Run: run, Hooks: hooks,
		ObservesPlugins: observe, Plugins: binaries.Plugins, Credentials: !ownConfiguration, HookService: true, Endpoints: options.Endpoints, Disposable: true, Progress: e.options.Progress,
	})
	if err != nil {
		return nil, errors.Join(err, server.Stop(), hooks.Close())
	}
	return &clusterTarget{Target: started, kubeConfig: server.KubeConfig, server: server, closers: []func(context.Context) error{
		func(context.Context) error { return errors.Join(server.Stop(), hooks.Close()) },
	}}, nil
}

// onServed returns a target on a server that is kept for several runs, or nil if there is none.
func (e *Envtest) onServed(ctx context.Context, options target.StartOptions, binaries assets.Assets, observe bool) (_ *clusterTarget, err error) {
	session, err := e.options.Served(ctx, binaries)
	if err != nil || session == nil {
		return nil, err
	}
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{Address: "127.0.0.1:" + strconv.Itoa(session.HookPort), Listen: port.Listen})
	if err != nil {
		session.Close()
		return nil, err
	}
	observe = observe && session.ObservesPlugins
	var audit cluster.AuditLog = session.Audit
	if !observe {
		audit = withoutPlugins{audit}
	}
	opened, err := open(ctx, session, cluster.Options{
		Config: session.Config, Kind: framework.TargetEnvtest, Audit: audit, Hooks: hooks, ObservesPlugins: observe,
		Plugins: session.Plugins, Served: true, Credentials: true, HookService: true, Endpoints: options.Endpoints, Disposable: true, Progress: e.options.Progress,
	})
	if err != nil {
		err = errors.Join(err, hooks.Close())
		session.Close()
		return nil, err
	}
	return &clusterTarget{Target: opened, kubeConfig: session.KubeConfig, session: session, closers: []func(context.Context) error{
		func(context.Context) error {
			defer session.Close()
			return hooks.Close()
		},
	}}, nil
}

// open is cluster.New on a server of this machine.
func open(ctx context.Context, server target.Ending, options cluster.Options) (opened *cluster.Target, err error) {
	err = target.WhileRuns(ctx, server, func(ctx context.Context) error {
		opened, err = cluster.New(ctx, options)
		return err
	})
	return opened, err
}

// withoutPlugins is the audit log of a server that records the calls of its admission plugins, for a run
// that did not ask for them.
type withoutPlugins struct{ cluster.AuditLog }

// Event returns an event without these calls. See cluster.AuditLog.
func (w withoutPlugins) Event(ctx context.Context, auditID string) (*framework.Audit, error) {
	event, err := w.AuditLog.Event(ctx, auditID)
	if event != nil {
		event.Plugins = nil
	}
	return event, err
}

func (e *Envtest) progress(line string) {
	if e.options.Progress != nil {
		e.options.Progress(line)
	}
}

// notStarted returns the error of envtest.Start as the one of target.Provider.
func notStarted(err error) error {
	var ended *envtest.EndedError
	if errors.As(err, &ended) && ended.Program == envtest.APIServer {
		return &target.NotStartedError{Log: ended.Log, Err: err}
	}
	return err
}

// profile returns the profile of the server: the one of the scenarios, and credentials
// for webhooks. OwnConfiguration is true if the scenarios have their own admission
// configuration, without these credentials.
func (*Envtest) profile(given *scenario.Server, run string, hookPort int) (profile envtest.Profile, ownConfiguration bool) {
	profile = DefaultProfile(hookPort)
	if given == nil {
		return profile, false
	}
	maps.Copy(profile.Flags, given.Flags)
	placeholders := strings.NewReplacer("$(hooks.port)", strconv.Itoa(hookPort), "$(id)", runid.Scenario(run, 1))
	for name, content := range given.Files {
		profile.Files[name] = placeholders.Replace(content)
	}
	profile.FeatureGates = given.FeatureGates
	return profile, given.Flags["admission-control-config-file"] != ""
}

// Version returns the version of the API servers that Start starts. The errors are those
// of assets.Ensure.
func (e *Envtest) Version(ctx context.Context) (string, error) {
	binaries, err := e.assets(ctx, e.options.ObservePlugins)
	if err != nil {
		return "", err
	}
	return "v" + strings.TrimPrefix(binaries.Version, "v"), nil
}

// assets finds or builds the binaries once. An error is not kept. With observe, a kube-apiserver
// that an older version of this program built is built again, unless nothing may be built.
func (e *Envtest) assets(ctx context.Context, observe bool) (assets.Assets, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rebuild := observe && !e.options.Assets.NoBuild
	if e.found == nil || rebuild && !e.found.ObservesPlugins && !e.rebuilt {
		options := e.options.Assets
		options.ObservePlugins, e.rebuilt = rebuild, rebuild
		found, err := assets.Ensure(ctx, options)
		if err != nil {
			return found, err
		}
		e.found = &found
	}
	return *e.found, nil
}
