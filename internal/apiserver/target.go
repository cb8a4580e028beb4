package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/fence"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The labels of everything that a run creates.
const (
	// RunLabel has the ID of the run as its value. Cleanup selects by it.
	RunLabel = install.RunLabel
	// ScenarioLabel has the ID of the Sandbox as its value.
	ScenarioLabel = install.ScenarioLabel
)

// Options configure a Target. Config is required.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Kind is the kind of Target to report. Empty means kubeconfig.
	Kind string
	// Run is the ID of the run: a few lower-case letters and digits. Everything created is
	// labelled with it. Empty means a random one.
	Run string
	// Hooks receives the webhook calls. Nil starts a Hook server on the loopback
	// interface, which Close stops.
	Hooks *hook.Server
	// ClientConfig returns the clientConfig by which the API server calls a Hook. Nil uses
	// the URL of the Hook.
	ClientConfig func(hook.ClientConfig) map[string]any
	// HookAddress is how the API server reaches the Hook server by address. The zero value
	// means the address of Hooks.
	HookAddress hook.Address
	// HookService is true if a Service of type ExternalName that names HookAddress.Host
	// leads the API server to the Hook server.
	HookService bool
	// HooksErr returns why webhook calls can no longer arrive, or nil. A nil function means
	// that this is not known.
	HooksErr func() error
	// Transport is how the API server reaches Hooks, to report. Empty means "url".
	Transport string
	// Endpoints are the endpoints of the webhooks under test, by NAMESPACE/NAME of the
	// Service in their clientConfig, or by HOST:PORT of the URL there. A webhook without an Endpoint is
	// called by its Service. The run waits until a URL with an Endpoint answers.
	Endpoints map[string]framework.Endpoint
	// Audit is as in target.Optional. Nil means that the audit log cannot be read.
	Audit func(ctx context.Context, auditID string) (*framework.Audit, error)
	// ObservesPlugins is true if the API server records the calls of its admission plugins, which
	// Audit returns.
	ObservesPlugins bool
	// Plugins are the names of the admission plugins that were compiled into the API server in
	// addition to its own, to report.
	Plugins []string
	// Served is true if the API server is one for tests that is used by several runs. Close then removes what the
	// Target created, also if the API server is Disposable.
	Served bool
	// Credentials is true if the API server runs on this machine and has credentials for the Hooks at
	// localhost only. Then calls of webhooks by URL go through a Hook, which this process forwards as the
	// API server would make them.
	Credentials bool
	// Disposable is true if the API server is only for tests: it has no other clients, and ends with the
	// run unless it is Served or Outlives the run. Requests are not confined, and Close removes nothing.
	Disposable bool
	// Outlives is true if a Disposable API server goes on after the run: Close removes what the Target created.
	Outlives bool
	// Foreign are namespaces of other clients that Requests may name: see Target.Confined.
	Foreign []string
	// Patience limits the wait until the API server uses what was installed. 0 means 30 s.
	Patience time.Duration
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Target is an API server. Its methods can be called by several goroutines at the same
// time.
type Target struct {
	options   Options
	client    *client.Client
	alive     *client.Client // for Alive
	installer *install.Installer
	fences    *fence.Fences
	webhooks  *fence.Webhooks
	remover   *remover
	sign      *sign // nil if the API server ends with the run
	info      framework.TargetInfo
	hooks     *hook.Server
	ownHooks  bool

	mu    sync.Mutex
	lacks target.Lacks // guarded by mu
}

// NewRunID returns an ID for a run: ten random lower-case letters and digits.
func NewRunID() string { return runid.New() }

// New prepares to use an API server. It is an error if the API server cannot be
// reached, refuses the credentials, or does not allow discovery.
func New(ctx context.Context, options Options) (*Target, error) {
	options = options.withDefaults()
	endpoints := install.Endpoints{ByAddress: options.Endpoints, URLs: options.Credentials}
	if err := endpoints.Validate(); err != nil {
		return nil, err
	}
	c, err := client.New(options.Config)
	if err != nil {
		return nil, err
	}
	alive, err := client.New(client.WithoutSharing(options.Config))
	if err != nil {
		return nil, err
	}
	t := &Target{options: options, client: c, alive: alive, hooks: options.Hooks}
	if t.info, err = t.describe(ctx); err != nil {
		return nil, err
	}
	if message := c.FindReplicas(ctx); message != "" {
		options.Progress(message)
	}
	if err := c.FindAggregated(ctx); err != nil {
		options.Progress(fmt.Sprintf("%v: what scenarios install may not be effective yet on an aggregated API server", err))
	}
	if t.hooks == nil {
		if t.hooks, err = hook.Start(context.WithoutCancel(ctx), hook.Options{}); err != nil {
			return nil, err
		}
		t.ownHooks = true
	}
	if t.options.HookAddress.Host == "" {
		t.options.HookAddress = t.hooks.Address()
	}
	t.info.Capabilities = t.options.capabilities()
	if t.options.Kind != framework.TargetEnvtest && t.client.HasControllers(ctx) {
		t.info.Capabilities = append(t.info.Capabilities, framework.CapabilityControllers)
	}
	t.remover = &remover{client: c, progress: options.Progress}
	t.installer = &install.Installer{
		Client: c, Hooks: t.hooks, Run: options.Run, ClientConfig: options.ClientConfig, HookAddress: t.options.HookAddress, Endpoints: endpoints,
		WebhooksForReviews: webhooksForReviews(t.info),
		DefaultAccounts:    options.Disposable && !slices.Contains(t.info.Capabilities, framework.CapabilityControllers),
		Foreign:            options.Foreign, Shared: !options.Disposable,
		NewCRD: t.confinedManifest,
	}
	if !options.Disposable || options.Served || options.Outlives {
		t.sign = newSign(c, options.Run)
	}
	t.webhooks = &fence.Webhooks{Endpoints: endpoints, Run: options.Run, Progress: options.Progress}
	t.fences = &fence.Fences{Client: c, Install: t.installer, HooksErr: options.HooksErr, Limit: options.Patience, Unknown: t.sign != nil}
	return t, nil
}

func (o Options) withDefaults() Options {
	if o.Kind == "" {
		o.Kind = framework.TargetKubeconfig
	}
	if o.Transport == "" {
		o.Transport = framework.TransportURL
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Run == "" {
		o.Run = NewRunID()
	}
	if o.ClientConfig == nil {
		o.ClientConfig = install.URLClientConfig
	}
	if o.HooksErr == nil {
		o.HooksErr = func() error { return nil }
	}
	return o
}

// capabilities returns what the Options make possible. HookAddress must be set.
func (o Options) capabilities() []string {
	var all []string
	if o.Audit != nil {
		all = append(all, framework.CapabilityAudit)
	}
	if o.Audit != nil && o.ObservesPlugins {
		all = append(all, framework.CapabilityObservedPlugins)
	}
	if o.Credentials {
		all = append(all, framework.CapabilityCredentials)
	}
	// A Service of type ExternalName cannot name an IPv6 address.
	if o.HookService && !strings.Contains(o.HookAddress.Host, ":") {
		all = append(all, framework.CapabilityHookService)
	}
	if o.HookAddress.Port == install.DefaultPort {
		all = append(all, framework.CapabilityDefaultPort)
	}
	return all
}

// describe reads the version, resources, feature gates and user from the API server.
func (t *Target) describe(ctx context.Context) (framework.TargetInfo, error) {
	info := framework.TargetInfo{Kind: t.options.Kind, Transport: t.options.Transport, Plugins: t.options.Plugins, Served: t.options.Served}
	var err error
	if info.ServerVersion, err = t.client.Version(ctx); err != nil {
		return info, err
	}
	if err := t.client.Discover(ctx); err != nil {
		return info, err
	}
	info.ServedKinds = t.client.Resources.Kinds()
	info.FeatureGates = t.client.FeatureGates(ctx)
	info.User = t.client.UserName(ctx)
	return info, nil
}

// Info describes the API server. See framework.Target.
func (t *Target) Info() framework.TargetInfo { return t.info }

// RunID returns the ID of the run.
func (t *Target) RunID() string { return t.options.Run }

// Optional returns the parts that the Target has. See target.Target.
func (t *Target) Optional() target.Optional {
	address := t.options.HookAddress
	optional := target.Optional{
		HookAddress: &address, Strangers: t.hooks.Strangers, Foreign: t.Foreign, Plugins: t.Plugins, Metrics: t.client.Samples, Audit: t.options.Audit,
		Explain: t.Explain, OpenAPI: t.client.OpenAPI, Resources: t.client.Resources.All,
	}
	if !t.options.Disposable {
		optional.Confined = t.Confined
	}
	if t.sign != nil {
		optional.Prepare, optional.Lacks = t.Prepare, t.Lacks
	}
	return optional
}

// Do sends one Request outside of any Sandbox. The Trace of the Result is nil, because
// Hooks belong to Sandboxes. See framework.Target.
func (t *Target) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	resolved, err := t.client.Resources.Resolve(request)
	if err != nil {
		return framework.Result{}, err
	}
	return t.send(ctx, resolved)
}

func (t *Target) send(ctx context.Context, request client.Request) (framework.Result, error) {
	composed, err := compose(t.client.Resources, request)
	if err != nil {
		return framework.Result{}, err
	}
	return t.client.Send(ctx, composed)
}

// Namespaced reports whether objects of a kind live in namespaces. It is an error if
// the API server does not serve the kind.
func (t *Target) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	res, err := t.client.Resources.Of(kind)
	return res.Namespaced, err
}

// WaitUntilEffective returns when the API server acts on every write of webhook
// configurations and policies that was finished before the call. The manifests say
// which kinds were written. First it waits until the webhooks under test in them answer,
// each once in a run; the error says which one does not, and why. Manifests of kinds that the API server does not serve are
// ignored: it has none.
//
// The error is a framework.ErrTimeout if the API server does not act on the writes in
// time.
func (t *Target) WaitUntilEffective(ctx context.Context, manifests []map[string]any) error {
	manifests = slices.DeleteFunc(slices.Clone(manifests), func(manifest map[string]any) bool {
		kind, _ := object.Kind(manifest)
		_, err := t.client.Resources.Of(kind)
		return errors.Is(err, framework.ErrNotServed)
	})
	kinds := fence.KindsOf(manifests)
	if !t.options.Disposable {
		kinds.Namespaces = false // a run changes no namespace that others know
	}
	if kinds == (fence.Kinds{}) {
		return nil
	}
	if err := t.webhooks.Wait(ctx, manifests); err != nil {
		return err
	}
	return t.fences.Wait(ctx, kinds)
}

// Alive returns an error if the API server no longer responds or can no longer read its storage, or if webhook
// calls no longer arrive at the Hook server.
func (t *Target) Alive(ctx context.Context) error {
	if err := t.options.HooksErr(); err != nil {
		return err
	}
	return t.Answers(ctx)
}

// Answers is Alive without the webhook calls.
func (t *Target) Answers(ctx context.Context) error { return t.alive.Alive(ctx) }

// Close ends the Target. Unless the API server is disposable, it removes everything
// that the run created and waits until it is gone; the error names what is left.
func (t *Target) Close(ctx context.Context) error {
	var errs []error
	if t.sign != nil {
		t.sign.end()
		// By name, whatever lists and discovery say.
		if err := errors.Join(t.installer.UninstallAll(ctx), t.remover.removeRun(ctx, t.options.Run)); err != nil {
			errs = append(errs, t.notRemoved(err))
		}
	}
	if t.ownHooks {
		errs = append(errs, t.hooks.Close())
	}
	t.client.Close()
	t.alive.Close()
	return errors.Join(errs...)
}

// notRemoved returns the error of a removal that failed. It is no apierrors.APIStatus.
func (t *Target) notRemoved(err error) error {
	return fmt.Errorf("remove what run %[1]s created: %[2]v: `admissiontest cleanup --run %[1]s` removes it later", t.options.Run, err) //nolint:errorlint // whoever refuses, something is left
}
