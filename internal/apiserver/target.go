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
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/reach"
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
	// KubeConfig is as in target.Optional.
	KubeConfig []byte
	// Local is the API server if it is one of this machine that belongs to the Target. Nil means that it is another one.
	Local *envtest.Server
	// UnderTest is true if what others installed on the API server is under test: then the Target has no Foreign.
	UnderTest bool
	// Patience limits the wait until the API server uses what was installed, and until a webhook under test answers.
	// 0 means 30 s.
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
	types     reach.TypeChecker
	sign      *sign // nil if the API server ends with the run
	info      framework.TargetInfo
	hooks     *hook.Server
	closers   []func(context.Context) error // see AfterClose

	mu    sync.Mutex
	lacks target.Lacks // guarded by mu
}

// defaultPatience is the Patience of Options that set none.
const defaultPatience = 30 * time.Second

// NewRunID returns an ID for a run: ten random lower-case letters and digits.
func NewRunID() string { return runid.New() }

// New prepares to use an API server. It is an error if the API server cannot be
// reached, refuses the credentials, or does not allow discovery.
func New(ctx context.Context, options Options) (*Target, error) {
	options = options.withDefaults()
	endpoints := install.Endpoints{ByAddress: options.Endpoints, URLs: options.Credentials}
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
		t.AfterClose(func(context.Context) error { return t.hooks.Close() })
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
		Shared:             !options.Disposable,
		NewCRD:             t.confinedManifest,
	}
	if !options.Disposable || options.Served || options.Outlives {
		t.sign = newSign(c, options.Run)
	}
	t.webhooks = &fence.Webhooks{Endpoints: endpoints, Run: options.Run, Limit: options.Patience, Progress: options.Progress}
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
	if o.Patience == 0 {
		o.Patience = defaultPatience
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
	info.User = t.client.User(ctx).Name
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
		Explain: t.Explain, TypeCheck: t.TypeCheck, OpenAPI: t.client.OpenAPI, Resources: t.client.Resources.All, KubeConfig: t.options.KubeConfig,
	}
	if t.options.UnderTest {
		optional.Foreign = nil
	}
	if local := t.options.Local; local != nil {
		optional.WriteFile, optional.RemoveFile, optional.Server = local.WriteFile, local.RemoveFile, local
		optional.Strangers = func() hook.Strangers {
			all := t.hooks.Strangers()
			all.Lost += local.Lost()
			return all
		}
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
	return t.answers(ctx)
}

// answers is Alive without the webhook calls. The error says why a server of this machine does not answer.
func (t *Target) answers(ctx context.Context) error {
	err := t.alive.Alive(ctx)
	if t.options.Local != nil {
		err = t.options.Local.Explain(err)
	}
	return err
}

// AfterClose makes Close call a function at its end. Functions are called in the order of the calls of AfterClose.
func (t *Target) AfterClose(end func(context.Context) error) { t.closers = append(t.closers, end) }

// Close ends the Target. Unless the API server is disposable, it removes everything
// that the run created and waits until it is gone; the error names what is left. It does not wait for an API server that
// is gone.
func (t *Target) Close(ctx context.Context) error {
	var removed error
	err := target.WhileAnswers(ctx, t.answers, func(ctx context.Context) error { // which ends the channel to a relay, too
		removed = t.remove(ctx)
		return removed
	})
	errs := []error{removed}
	if errors.Is(err, target.ErrGone) {
		errs = []error{err, removed}
	}
	for _, end := range t.closers {
		errs = append(errs, end(ctx))
	}
	t.client.Close()
	t.alive.Close()
	return errors.Join(errs...)
}

// remove removes what the run created, unless the API server ends with it.
func (t *Target) remove(ctx context.Context) error {
	if t.sign == nil {
		return nil
	}
	t.sign.end()
	// By name, whatever lists and discovery say.
	if err := errors.Join(t.installer.UninstallAll(ctx), t.remover.removeRun(ctx, t.options.Run)); err != nil {
		return t.notRemoved(err)
	}
	return nil
}

// notRemoved returns the error of a removal that failed. It is no apierrors.APIStatus.
func (t *Target) notRemoved(err error) error {
	return fmt.Errorf("remove what run %[1]s created: %[2]v: `admissiontest cleanup --run %[1]s` removes it later", t.options.Run, err) //nolint:errorlint // whoever refuses, something is left
}

// InstallForRun installs what all Sandboxes of the run share, before the first one: webhook
// configurations, policies and bindings, their parameters, and CustomResourceDefinitions. Webhooks and
// policies are narrowed to all Sandboxes, but not to the other namespaces of the run. Names get a
// prefix, except names of CustomResourceDefinitions. A CustomResourceDefinition that the API server
// has already is used if it is the same, and not removed. A webhook without a clientConfig does not
// become a Hook.
//
// Any other object is a parameter of a policy. One in a namespace is installed in a namespace of the
// run, which the bindings then name.
//
// Close removes all of it, also after an error. The error of a manifest is a framework.ManifestError. The API
// server acts on what was installed after WaitUntilEffective.
func (t *Target) InstallForRun(ctx context.Context, manifests []map[string]any) error {
	if t.sign != nil {
		if err := t.sign.open(ctx); err != nil {
			return err
		}
	}
	if _, err := t.fences.Namespace(ctx); err != nil { // a policy for namespaces would decide about it
		return err
	}
	return t.installer.InstallForRun(ctx, manifests)
}
