package providers

import (
	"context"
	"errors"
	"fmt"
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
// Kubernetes, found on this machine, downloaded or built.
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
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Envtest starts API servers on this machine, with any server profile.
type Envtest struct {
	options EnvtestOptions

	mu    sync.Mutex
	found *binaries.Assets
}

// NewEnvtest returns a provider. It does nothing before the first call of Start or
// Version.
func NewEnvtest(options EnvtestOptions) *Envtest {
	if options.Progress != nil && options.Assets.Progress == nil {
		options.Assets.Progress = options.Progress
	}
	options.ObservePlugins = options.ObservePlugins || len(options.Assets.Plugins) > 0
	options.Assets.ObservePlugins = options.ObservePlugins
	return &Envtest{options: options}
}

// Check returns nil: the user of a server of this machine is its administrator.
func (*Envtest) Check(context.Context) error { return nil }

// Start gets the binaries, which can mean downloading or building them, and starts an API server. The
// errors come from binaries.Ensure and from the start.
func (e *Envtest) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	binaries, err := e.assets(ctx)
	if err == nil && options.ObservePlugins {
		binaries, err = e.observing(ctx, binaries)
	}
	if err != nil {
		return nil, err
	}
	observe := e.options.ObservePlugins || options.ObservePlugins && binaries.ObservesPlugins
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	run := apiserver.NewRunID()
	profile, ownConfiguration := e.profile(options.Profile, run, hooks.Address().Port)
	server, err := envtest.Start(ctx, envtest.Options{BinaryAssetsDirectory: binaries.Dir, Profile: profile, ObservePlugins: observe, NoAudit: e.options.NoAudit})
	if err != nil {
		return nil, errors.Join(notStarted(err), hooks.Close())
	}
	var audit func(context.Context, string) (*framework.Audit, error)
	if server.Audit != nil {
		audit = server.Audit.Event
	}
	stop := func(context.Context) error { return errors.Join(server.Stop(), hooks.Close()) }
	opened, err := open(ctx, apiserver.Options{
		Config: server.Config, KubeConfig: server.KubeConfig, Local: server, Kind: framework.TargetEnvtest, Audit: audit, Run: run, Hooks: hooks,
		ObservesPlugins: observe, Plugins: binaries.Plugins, Credentials: !ownConfiguration, HookService: true, Endpoints: options.Endpoints, Disposable: true, Patience: options.Patience, Progress: e.options.Progress,
	})
	if err != nil {
		return nil, errors.Join(err, stop(ctx))
	}
	opened.AfterClose(stop)
	return opened, nil
}

// open is apiserver.New on a server of this machine.
func open(ctx context.Context, options apiserver.Options) (opened *apiserver.Target, err error) {
	err = target.WhileRuns(ctx, options.Local, func(ctx context.Context) error {
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
	binaries, err := e.assets(ctx)
	if err != nil {
		return "", err
	}
	return "v" + strings.TrimPrefix(binaries.Version, "v"), nil
}

// observing returns binaries of the same version whose kube-apiserver records the calls of plugins. It builds them, unless the
// user named the others or wants no build: then these are returned.
func (e *Envtest) observing(ctx context.Context, found binaries.Assets) (binaries.Assets, error) {
	options := e.options.Assets
	named := found.Source == binaries.SourceDir || found.Source == binaries.SourceEnvironment
	if found.ObservesPlugins || named || options.NoBuild {
		return found, nil
	}
	options.Version, options.ObservePlugins = found.Version, true
	return binaries.Ensure(ctx, options)
}

// assets finds, downloads or builds the binaries once. An error is not kept.
func (e *Envtest) assets(ctx context.Context) (binaries.Assets, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found != nil {
		return *e.found, nil
	}
	found, err := binaries.Ensure(ctx, e.options.Assets)
	if err == nil {
		e.found = &found
	}
	return found, err
}

// The files of the profile with credentials for webhooks.
const (
	admissionFile   = "admissiontest-admission.yaml"
	credentialsFile = "admissiontest-webhooks.kubeconfig"
)

// defaultProfile returns the profile of the default server: a profile in which the API server has a token for webhooks that it
// calls by the name localhost at the port of the Hooks. Hooks are called by IP address
// unless a scenario says otherwise, and then get no token, as on a server without the
// profile. See
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers
func defaultProfile(port int) envtest.Profile {
	configuration := ""
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		configuration += fmt.Sprintf(`- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: $(files)/%s
`, plugin, credentialsFile)
	}
	return envtest.Profile{
		Flags: map[string]string{"admission-control-config-file": "$(files)/" + admissionFile},
		Files: map[string]string{
			admissionFile: "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" + configuration,
			credentialsFile: fmt.Sprintf(`apiVersion: v1
kind: Config
users:
- name: localhost:%d
  user: {token: token-of-the-kubeconfig}
`, port),
		},
	}
}
