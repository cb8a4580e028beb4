package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// AuditLog finds audit events of the API server.
type AuditLog interface {
	// Event returns the event of stage ResponseComplete with an audit ID, and waits
	// for it until ctx is done.
	Event(ctx context.Context, auditID string) (*framework.Audit, error)
}

// Options say how to use an API server. Config is required.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Kind is the Target kind to report. Empty means kubeconfig.
	Kind string
	// Run is the run's ID: a few lower-case letters and digits. Everything that is
	// created is labelled with it. Empty makes a random one.
	Run string
	// Hooks receives the webhook calls. Nil starts a Hook server on the loopback
	// interface, which Close ends.
	Hooks *hook.Server
	// ClientConfig makes the clientConfig by which the API server reaches a Hook. Nil
	// leads it to the Endpoint's URL.
	ClientConfig func(hook.Endpoint) map[string]any
	// HooksAt is where the API server reaches Hooks by address. The zero value is where
	// their URLs lead.
	HooksAt HooksAt
	// HookService means that the API server calls the Hooks through a Service of type
	// ExternalName that names HooksAt.Host.
	HookService bool
	// HooksErr says why webhook calls cannot arrive any more: package
	// framework/cluster/service knows. Nil, and an error that is nil, mean that
	// nothing is known to be wrong.
	HooksErr func() error
	// Transport is how the API server reaches Hooks, to report. Empty means "url".
	Transport string
	// Endpoints say how webhooks under test are reached, by NAMESPACE/NAME of the
	// Service that their clientConfig names. One without an Endpoint is called by its
	// Service. See also Target.SetEndpoints.
	Endpoints map[string]Endpoint
	// Audit reads the audit log. Nil means that there is no access to it.
	Audit AuditLog
	// Credentials means that the API server has a token for webhooks at localhost.
	Credentials bool
	// Disposable means that the API server ends with the run, so that Release and
	// Close need not remove anything from it.
	Disposable bool
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)
}

// Target is an API server. It is safe for use by several goroutines.
type Target struct {
	options   Options
	client    *http.Client
	base      *url.URL
	resources *resources
	info      framework.TargetInfo
	replicas  []replica
	hooks     *hook.Server
	ownHooks  bool

	mu     sync.Mutex
	nonces int
	owners map[string]*owner
	// shared are cluster-scoped objects that several scenarios give, by kind and name.
	shared map[string]*sharedObject
	// endpoints are those of webhooks under test; answered has the addresses of those
	// that did, as JSON.
	endpoints map[string]Endpoint
	answered  map[string]bool
}

// owner is what a scenario has on the cluster. What else it creates is found
// again by label.
type owner struct {
	// conversion is how custom resources are converted.
	conversion hook.Conversion
	// governing are the configurations and policies installed, in the order of
	// their creation.
	governing []reference
	// touched are the resources that the scenario has created namespaced objects of.
	touched map[schema.GroupVersionResource]bool
}

// reference names an object by its URL.
type reference struct {
	resource  resource
	namespace string
	name      string
}

// New prepares to use an API server. The error says which of address, credentials
// and rights is the matter.
func New(ctx context.Context, options Options) (*Target, error) {
	t, err := newClient(options)
	if err != nil {
		return nil, err
	}
	if err := t.learn(ctx, t.options.Config); err != nil {
		return nil, err
	}
	t.findReplicas(ctx)
	if t.hooks = options.Hooks; t.hooks == nil {
		if t.hooks, err = hook.Start(context.WithoutCancel(ctx), hook.Options{}); err != nil {
			return nil, err
		}
		t.ownHooks = true
	}
	t.info.Abilities = append(t.info.Abilities, t.hooksAbilities()...)
	return t, nil
}

// newClient makes a Target that has asked the API server for nothing yet and has
// no Hooks.
func newClient(options Options) (*Target, error) {
	if options.Config == nil {
		return nil, errors.New("use API server: Options.Config is nil: give a rest.Config")
	}
	if options.Kind == "" {
		options.Kind = framework.TargetKubeconfig
	}
	if options.Transport == "" {
		options.Transport = framework.TransportURL
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	if options.Run == "" {
		options.Run = NewRunID()
	}
	if options.ClientConfig == nil {
		options.ClientConfig = byURL
	}
	if options.HooksErr == nil {
		options.HooksErr = func() error { return nil }
	}
	config := rest.CopyConfig(options.Config)
	config.QPS = -1 // the API server's own fairness is limit enough
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("use API server at %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("use API server at %s: %w", config.Host, err)
	}
	options.Config = config
	t := &Target{
		options: options, client: client, base: base,
		owners: map[string]*owner{}, shared: map[string]*sharedObject{}, answered: map[string]bool{},
	}
	return t, t.SetEndpoints(options.Endpoints)
}

// learn asks the API server for its version, resources and feature gates.
func (t *Target) learn(ctx context.Context, config *rest.Config) error {
	answer, err := t.send(ctx, call{method: http.MethodGet, path: "/version"})
	if err != nil {
		return fmt.Errorf("reach API server at %s: %w", config.Host, err)
	}
	if !answer.Allowed() {
		return fmt.Errorf("ask API server at %s for its version: %d %s: check the credentials", config.Host, answer.Status.Code, answer.Status.Message)
	}
	t.info = framework.TargetInfo{Kind: t.options.Kind, Transport: t.options.Transport}
	t.info.ServerVersion, _ = nestedString(answer.Fields(), "gitVersion")
	if t.options.Audit != nil {
		t.info.Abilities = append(t.info.Abilities, framework.AbilityAudit)
	}
	if t.options.Credentials {
		t.info.Abilities = append(t.info.Abilities, framework.AbilityCredentials)
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, t.client)
	if err != nil {
		return fmt.Errorf("discover resources of the API server: %w", err)
	}
	if t.resources, err = discoverResources(client); err != nil {
		return err
	}
	t.info.FeatureGates = t.featureGates(ctx)
	t.info.User = t.userName(ctx)
	return nil
}

// userName asks the API server who we are, or returns "" where it does not say.
func (t *Target) userName(ctx context.Context) string {
	answer, err := t.request(ctx, call{
		method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`),
	})
	if err != nil {
		return ""
	}
	name, _ := nestedString(answer.Fields(), "status", "userInfo", "username")
	return name
}

// Info describes the API server. See framework.Target.
func (t *Target) Info() framework.TargetInfo { return t.info }

// Run is the run's ID.
func (t *Target) Run() string { return t.options.Run }

// Audit returns the audit event of an answer.
func (t *Target) Audit(ctx context.Context, auditID string) (*framework.Audit, error) {
	if t.options.Audit == nil {
		return nil, errors.New("read audit event: this target has no access to the API server's audit log")
	}
	return t.options.Audit.Event(ctx, auditID)
}

// Namespaced returns whether objects of a kind live in a namespace.
func (t *Target) Namespaced(gvk schema.GroupVersionKind) (bool, error) {
	res, err := t.resources.of(gvk)
	return res.Namespaced, err
}

// Alive returns an error when the API server does not answer any more, or its
// webhook calls do not reach our Hooks any more.
func (t *Target) Alive(ctx context.Context) error {
	if err := t.options.HooksErr(); err != nil {
		return err
	}
	answer, err := t.send(ctx, call{method: http.MethodGet, path: "/version"})
	if err != nil {
		return err
	}
	if answer.Status.Code >= http.StatusInternalServerError {
		return fmt.Errorf("ask API server for its version: %w: %d", framework.ErrLost, answer.Status.Code)
	}
	return nil
}

// SetScript sets the script of a webhook of a scenario.
func (t *Target) SetScript(id, webhook string, script hook.Script) error {
	return t.hooks.SetScript(id, webhook, script)
}

// Calls returns the webhook calls of a scenario since its last Mark.
func (t *Target) Calls(id string) []framework.Call { return t.hooks.Calls(id) }

// Heed says whose requests the Hooks of a scenario are for. See hook.Server.Heed.
func (t *Target) Heed(id string, ours func(user string) bool) { t.hooks.Heed(id, ours) }

// Mark forgets the webhook calls of a scenario so far.
func (t *Target) Mark(id string) { t.hooks.Mark(id) }

// HookError returns the first error of a Meanwhile of the scenario.
func (t *Target) HookError(id string) error { return t.hooks.Err(id) }

// Close ends what the Target started. It removes what is left on the cluster
// unless the API server is disposable.
func (t *Target) Close(ctx context.Context) error {
	var errs []error
	if !t.options.Disposable {
		errs = append(errs, t.removeAll(ctx))
	}
	if t.ownHooks {
		errs = append(errs, t.hooks.Close())
	}
	t.client.CloseIdleConnections()
	for _, one := range t.replicas {
		one.client.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// request sends an administrative request and returns an error unless it was
// allowed or its code is one of those accepted.
func (t *Target) request(ctx context.Context, c call, accepted ...int32) (framework.Result, error) {
	if c.contentType == "" {
		c.contentType = "application/json"
	}
	answer, err := t.send(ctx, c)
	if err != nil {
		return answer, err
	}
	if !answer.Allowed() && !slices.Contains(accepted, answer.Status.Code) {
		return answer, fmt.Errorf("%s %s: %d %s: %s", c.method, c.path, answer.Status.Code, answer.Status.Reason, answer.Status.Message)
	}
	return answer, nil
}

func mustJSON(value any) []byte {
	// Manifests come from JSON or YAML and marshal always.
	data, _ := json.Marshal(value)
	return data
}
