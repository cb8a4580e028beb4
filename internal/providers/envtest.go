package providers

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// EnvtestOptions configure Envtest. The zero value means the default version of
// Kubernetes, found on this machine or built.
type EnvtestOptions struct {
	// Assets says which binaries to use, and where to get them.
	Assets binaries.Options
	// ObservePlugins is true if the servers must be able to record the calls of their admission
	// plugins: otherwise Start fails. If it is false, a server records them if it can and
	// target.StartOptions ask for it. NewEnvtest sets it if Assets has plugins: only a server that
	// records calls shows that a plugin panicked.
	ObservePlugins bool
	// NoAudit turns the audit log off: no target reads it. It cannot be true with ObservePlugins.
	NoAudit bool
	// Ahead is true if many targets follow each other, as with run --watch: when one without a profile is closed,
	// the API server of the next one is started. Envtest.Close ends it.
	Ahead bool
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Envtest starts API servers on this machine, with any server profile.
type Envtest struct {
	options EnvtestOptions

	mu      sync.Mutex
	found   *binaries.Assets
	rebuilt bool // found is what Ensure found when asked for a server that records calls
	next    *ahead
}

// NewEnvtest returns a provider. It does nothing before the first call of Start or
// Version.
func NewEnvtest(options EnvtestOptions) *Envtest {
	if options.Progress != nil && options.Assets.Progress == nil {
		options.Assets.Progress = options.Progress
	}
	options.ObservePlugins = options.ObservePlugins || len(options.Assets.Plugins) > 0
	return &Envtest{options: options}
}

// Check returns a scenario.Error for each kind that seems to be misspelt, if the servers have the default version
// of Kubernetes, whose kinds are known.
func (e *Envtest) Check(_ context.Context, scenarios []scenario.Scenario) error {
	if version := e.options.Assets.Version; version != "" && version != binaries.DefaultVersion {
		return nil
	}
	return misspeltKinds(scenarios)
}

// Start gets the binaries, which can mean building them, and starts an API server. The
// errors come from binaries.Ensure and from the start.
func (e *Envtest) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	binaries, err := e.assets(ctx, e.options.ObservePlugins || options.ObservePlugins)
	if err != nil {
		return nil, err
	}
	observe := e.options.ObservePlugins || options.ObservePlugins && binaries.ObservesPlugins
	if options.Profile == nil {
		if next := e.takeNext(ctx, binaries, observe); next != nil {
			return e.target(ctx, next, options)
		}
	}
	one, err := e.start(ctx, options, binaries, observe)
	if err != nil {
		return nil, err
	}
	return e.target(ctx, one, options)
}

// started is an API server with the Hooks that it has credentials for, before a target uses them.
type started struct {
	server           *envtest.Server
	hooks            *hook.Server
	run              string
	binaries         binaries.Assets
	observe          bool
	ownConfiguration bool
}

func (s *started) stop() error { return errors.Join(s.server.Stop(), s.hooks.Close()) }

// start starts an API server and Hooks.
func (e *Envtest) start(ctx context.Context, options target.StartOptions, binaries binaries.Assets, observe bool) (*started, error) {
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	s := &started{hooks: hooks, run: apiserver.NewRunID(), binaries: binaries, observe: observe}
	var profile envtest.Profile
	profile, s.ownConfiguration = e.profile(options.Profile, s.run, hooks.Address().Port)
	if s.server, err = envtest.Start(ctx, envtest.Options{BinaryAssetsDirectory: binaries.Dir, Profile: profile, ObservePlugins: observe, NoAudit: e.options.NoAudit, Parallel: options.Parallel}); err != nil {
		return nil, errors.Join(notStarted(err), hooks.Close())
	}
	return s, nil
}

// target makes a target of an API server. If it cannot, it stops the server.
func (e *Envtest) target(ctx context.Context, s *started, options target.StartOptions) (target.Target, error) {
	var audit apiserver.AuditLog
	if s.server.Audit != nil {
		audit = s.server.Audit
	}
	opened, err := open(ctx, s.server, apiserver.Options{
		Config: s.server.Config, Kind: framework.TargetEnvtest, Audit: audit, Run: s.run, Hooks: s.hooks,
		ObservesPlugins: s.observe, Plugins: s.binaries.Plugins, Credentials: !s.ownConfiguration, HookService: true, Endpoints: options.Endpoints, Disposable: true, Patience: options.Patience, Progress: e.options.Progress,
	})
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return &clusterTarget{Target: opened, kubeConfig: s.server.KubeConfig, server: s.server, closers: []func(context.Context) error{
		func(context.Context) error {
			err := s.stop()
			if e.options.Ahead && options.Profile == nil {
				e.startNext(s.binaries, s.observe)
			}
			return err
		},
	}}, nil
}

// ahead is an API server that is started before it is needed. Server is nil if it did not start. The fields are set
// when done is closed.
type ahead struct {
	done   chan struct{}
	cancel context.CancelFunc
	server *started
}

// startNext starts the API server of the next target.
func (e *Envtest) startNext(binaries binaries.Assets, observe bool) {
	ctx, cancel := context.WithCancel(context.Background())
	next := &ahead{done: make(chan struct{}), cancel: cancel}
	e.mu.Lock()
	before := e.next
	e.next = next
	e.mu.Unlock()
	go func() {
		defer close(next.done)
		next.server, _ = e.start(ctx, target.StartOptions{}, binaries, observe) // if it cannot, the next Start says why
	}()
	_ = before.end()
}

// takeNext returns the API server that was started ahead, or nil if there is none that is as it must be.
func (e *Envtest) takeNext(ctx context.Context, binaries binaries.Assets, observe bool) *started {
	e.mu.Lock()
	next := e.next
	e.next = nil
	e.mu.Unlock()
	if next == nil {
		return nil
	}
	select {
	case <-next.done:
	case <-ctx.Done():
	}
	if s := next.server; ctx.Err() == nil && s != nil && s.binaries.Dir == binaries.Dir && s.observe == observe && s.server.Err() == nil {
		next.cancel()
		return s
	}
	_ = next.end()
	return nil
}

// end stops the API server, whether or not it is ready.
func (a *ahead) end() error {
	if a == nil {
		return nil
	}
	a.cancel()
	<-a.done
	if a.server == nil {
		return nil
	}
	return a.server.stop()
}

// Close stops the API server that was started ahead. Targets are closed by themselves.
func (e *Envtest) Close() error {
	e.mu.Lock()
	next := e.next
	e.next = nil
	e.mu.Unlock()
	return next.end()
}

// open is apiserver.New on a server of this machine.
func open(ctx context.Context, server target.Ending, options apiserver.Options) (opened *apiserver.Target, err error) {
	err = target.WhileRuns(ctx, server, func(ctx context.Context) error {
		opened, err = apiserver.New(ctx, options)
		return err
	})
	return opened, err
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
	profile = defaultProfile(hookPort)
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
// of binaries.Ensure.
func (e *Envtest) Version(ctx context.Context) (string, error) {
	binaries, err := e.assets(ctx, e.options.ObservePlugins)
	if err != nil {
		return "", err
	}
	return "v" + strings.TrimPrefix(binaries.Version, "v"), nil
}

// assets finds or builds the binaries once. An error is not kept. With observe, a kube-apiserver
// that an older version of this program built is built again, unless nothing may be built.
func (e *Envtest) assets(ctx context.Context, observe bool) (binaries.Assets, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rebuild := observe && !e.options.Assets.NoBuild
	if e.found == nil || rebuild && !e.found.ObservesPlugins && !e.rebuilt {
		options := e.options.Assets
		options.ObservePlugins, e.rebuilt = rebuild, rebuild
		found, err := binaries.Ensure(ctx, options)
		if err != nil {
			return found, err
		}
		e.found = &found
	}
	return *e.found, nil
}
