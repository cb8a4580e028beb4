// Package target has the interfaces by which a run uses an API server: a [Provider] starts a
// [Target], and each scenario gets a [Sandbox] in it.
//
// Package providers implements them for package internal/apiserver. Tests implement them without
// an API server. The engine uses API servers only through this package.
//
// A part that a Target can lack is a field of [Optional]: nil means that the Target lacks it. No
// part is found by a type assertion, so a wrapper of a Target cannot lose one silently.
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// ErrNoDryRun marks an API server that carries out dry-run requests. A run cannot wait for configurations there without
// changing what belongs to others.
var ErrNoDryRun = errors.New("the API server carries out dry-run requests, so no scenario can run on it")

// Target is an API server on which many scenarios run at the same time, each in its own
// Sandbox. Its methods can be called by several goroutines at the same time.
type Target interface {
	framework.Target
	// RunID returns the ID of the run. It is part of the ID of every scenario.
	RunID() string
	// Namespaced reports whether objects of a kind live in namespaces. It is an error if
	// the kind is not served.
	Namespaced(kind schema.GroupVersionKind) (bool, error)
	// InstallForRun installs, before the first Sandbox, what all of them share. The error of a
	// manifest is a framework.ManifestError.
	InstallForRun(ctx context.Context, manifests []map[string]any) error
	// NewSandbox creates a Sandbox, with its namespace.
	NewSandbox(ctx context.Context, options SandboxOptions) (Sandbox, error)
	// WaitUntilEffective returns when the API server acts on every write of webhook
	// configurations and policies before. The manifests say which kinds were written.
	WaitUntilEffective(ctx context.Context, manifests []map[string]any) error
	// Optional returns the parts that a Target can lack.
	Optional() Optional
	// Alive returns an error if the API server no longer responds.
	Alive(ctx context.Context) error
	// Close removes everything that the run created and ends the Target.
	Close(ctx context.Context) error
}

// SandboxOptions configure a Sandbox. ID is required.
type SandboxOptions struct {
	// ID is the name of the namespace. It contains the ID of the run.
	ID string
	// Users reports whether requests of a user belong to the Sandbox. Calls for requests of
	// other users, such as controllers, are allowed and not recorded. Nil accepts every
	// user.
	Users func(name string) bool
	// Conversion is how custom resources are converted whose CustomResourceDefinitions are
	// installed without a clientConfig.
	Conversion hook.Conversion
	// Open installs webhook configurations and policies as they are: with their names, and not
	// narrowed to the Sandbox. Install accepts objects in every namespace. It is for a
	// Sandbox that is alone on an API server without other clients.
	Open bool
	// DryRuns is true if all Requests of an Open Sandbox are dry runs, and its policies decide about no others: not
	// about what Store writes.
	DryRuns bool
	// Requests are the Requests that the Sandbox will send, as far as they are known. Webhook configurations and policies
	// decide about Requests in namespaces with ID in their names, among these and among the Namespaces that are installed.
	Requests []framework.Request
	// Accounts reports whether Pods or tokens in a namespace need its ServiceAccount default, which is created
	// unless a controller of the cluster does it. It is asked for the namespaces of the Sandbox and for
	// the namespaces that every API server has. Nil means the namespaces of the Sandbox.
	Accounts func(namespace string) bool
}

// Sandbox is where one scenario runs. Its methods can be called by several goroutines at
// the same time.
type Sandbox interface {
	// Target: the Result of Do has the webhook calls of the scenario that began before the
	// response. An error of a Meanwhile function is returned with the Result.
	framework.Target
	// Send is Do without the webhook calls: the Result has no Trace.
	Send(ctx context.Context, request framework.Request) (framework.Result, error)
	// Install creates an object, or replaces the object of the same name.
	Install(ctx context.Context, manifest map[string]any, scripts map[string]hook.Script) error
	// Delete deletes an object that Install installed.
	Delete(ctx context.Context, kind schema.GroupVersionKind, name string) error
	// Grant gives the user of each request the right to send it.
	Grant(ctx context.Context, requests []framework.Request) error
	// WaitForParams returns when the policies see the parameters that were installed or written before, as
	// they are now. The error is a framework.ErrTimeout if they do not see them.
	WaitForParams(ctx context.Context) error
	// SetScript replaces the script of a webhook.
	SetScript(webhook string, script hook.Script) error
	// Record records the webhook calls of the scenario until Stop.
	Record() *hook.Recording
	// Uninstall removes the webhook configurations and policies.
	Uninstall(ctx context.Context) error
	// Store is Install for an object that only exists to be the object of a request: a webhook
	// configuration or policy is not narrowed and not connected.
	Store(ctx context.Context, manifest map[string]any) error
	// RemoveStored removes, after Uninstall, all cluster-scoped objects of the Sandbox whose names other scenarios can use.
	RemoveStored(ctx context.Context) error
}

// Optional are the parts that a Target can lack. Nil means that it lacks the part.
type Optional struct {
	// Audit returns the audit event of a response, and waits for it until ctx is done. It
	// belongs to framework.CapabilityAudit.
	Audit func(ctx context.Context, auditID string) (*framework.Audit, error)
	// Confined returns a framework.ErrForeign if the scenario of that ID may not send a
	// request, because it is for what belongs to other clients of the API server. Without
	// it, the API server has no other clients, and scenarios may send every request.
	Confined func(id string, request framework.Request) error
	// Strangers returns what clients other than the API server did to the Hooks, and to the other ports that
	// the API server calls.
	Strangers func() hook.Strangers
	// Foreign returns the webhook configurations, policies and bindings on the API server that no run
	// installed.
	Foreign func(ctx context.Context) ([]map[string]any, error)
	// Prepare returns why the API server refuses what it needs to accept for every scenario, or nil. Without
	// it, nothing of another client can refuse.
	Prepare func(ctx context.Context) error
	// Lacks returns what the API server is known to lack, after Prepare. Without it, the API server lacks nothing.
	Lacks func() Lacks
	// Explain returns what each webhook, policy and binding of the scenario of that ID does about a
	// request, after its result. The ID "" stands for Foreign.
	Explain func(ctx context.Context, id string, request framework.Request, result framework.Result) ([]reach.Finding, error)
	// TypeCheck returns what the type check of Kubernetes says about the policies of the scenario of that
	// ID, for the kind of object of a request.
	TypeCheck func(ctx context.Context, id string, request framework.Request) ([]reach.TypeWarning, error)
	// Plugins returns the names of the enabled admission plugins. If it also returns an error, other
	// plugins may be enabled too. If Plugins is nil, the enabled plugins are not known.
	Plugins func(ctx context.Context) ([]string, error)
	// Metrics returns the samples of a metric of the API server.
	Metrics func(ctx context.Context, name string) ([]framework.Sample, error)
	// OpenAPI returns the OpenAPI v3 document of the API server for a group and version, as decoded JSON.
	OpenAPI func(ctx context.Context, of schema.GroupVersion) (map[string]any, error)
	// Resources returns the resources and subresources that the API server serves, with their groups and
	// versions. "widgets/*" stands for any subresource, "*/*" for what is not known of a group, and the
	// version "*" for a resource that only other API servers serve.
	Resources func() []metav1.APIResource
	// WriteFile replaces or creates a file of the API server, and RemoveFile removes one: files of
	// scenario.Server.Files, by their paths.
	WriteFile  func(path, content string) error
	RemoveFile func(path string) error
	// Server says when the API server ends. Without it, an API server that does not respond may respond again.
	Server Ending
	// KubeConfig is the content of a kubeconfig file with one context: the API server and the
	// user of the run.
	KubeConfig []byte
	// HookAddress is how the API server reaches the Hook server by address: for the
	// placeholders $(hooks.host), $(hooks.port) and $(hooks.caBundle).
	HookAddress *hook.Address
}

// Ending is an API server whose end is known when it happens.
type Ending interface {
	// Ended returns a channel that is closed when the API server ends.
	Ended() <-chan struct{}
	// Err returns why the API server ended by itself. It is nil before, and if the API server was stopped.
	Err() error
}

// ErrGone means: the API server ended, or does not respond any more.
var ErrGone = errors.New("the API server is gone")

// WhileRuns calls a function whose context ends with an API server. If that happened before it returned
// an error, the error is an ErrGone, with the reason. A nil server is one whose end is not known.
func WhileRuns(ctx context.Context, server Ending, do func(context.Context) error) error {
	if server == nil {
		return do(ctx)
	}
	return until(ctx, func(ctx context.Context) error {
		select {
		case <-server.Ended():
			return cmp.Or(server.Err(), errStopped)
		case <-ctx.Done():
			return nil
		}
	}, do)
}

// until is WhileRuns for an API server that has ended when ended returns an error.
func until(ctx context.Context, ended, do func(context.Context) error) error {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		if why := ended(running); why != nil {
			end(fmt.Errorf("%w: %w", ErrGone, why))
		}
	}()
	err := do(running)
	if cause := context.Cause(running); err != nil && errors.Is(cause, ErrGone) {
		return cause
	}
	return err
}

// errStopped is the reason of an ErrGone if the API server did not end by itself.
var errStopped = errors.New("it was stopped")

// ErrNoProfiles is the error of a Provider that cannot start a server with a profile.
var ErrNoProfiles = errors.New("this target cannot start an API server with the flags that the scenario asks for; target envtest can")

// NotStartedError is the error of a Provider whose API server ended by itself before it was
// ready: it refuses its configuration, for instance.
type NotStartedError struct {
	// Log is the end of what the API server printed.
	Log string
	// Err is the error, with the reason in one line.
	Err error
}

// Error returns the text of Err.
func (e *NotStartedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *NotStartedError) Unwrap() error { return e.Err }

// Provider starts Targets.
type Provider interface {
	// Check finds out, before anything is started or created, whether a run is possible: whether the API server
	// answers, and the user has the rights that every run needs.
	Check(ctx context.Context) error
	// Version returns the version of the API servers, "v1.36.3", if it is known before one
	// is started, or "". It can take long: the binaries may have to be built.
	Version(ctx context.Context) (string, error)
	// Start starts a Target. It is an ErrNoProfiles if the Provider cannot start a server
	// with the profile, and a NotStartedError if the API server ended before it was ready.
	Start(ctx context.Context, options StartOptions) (Target, error)
}

// StartOptions configure a Target.
type StartOptions struct {
	// Profile has the flags of the API server. Nil means the default.
	Profile *scenario.Server
	// Endpoints are the endpoints of the webhooks under test, by NAMESPACE/NAME of their
	// Service or by HOST:PORT of their URL.
	Endpoints map[string]framework.Endpoint
	// ObservePlugins asks for an API server that records the calls of its admission plugins. A
	// Provider that has none starts another one, without
	// framework.CapabilityObservedPlugins.
	ObservePlugins bool
	// Patience limits each wait until the API server uses what was installed. 0 means a default.
	Patience time.Duration
}

// Feature is what an API server other than kube-apiserver can lack, in words.
type Feature string

// The features that are probed, besides AdmissionOf.
const (
	// Narrowing keeps webhooks from requests in namespaces that they do not select.
	Narrowing Feature = "narrowing"
	// Warnings are warnings of webhooks and policies that arrive in the response.
	Warnings Feature = "warnings"
	// Impersonation lets the run send requests as other users, who may enter.
	Impersonation Feature = "impersonation"
)

// AdmissionOf is the feature that webhooks are called for objects of a kind.
func AdmissionOf(kind schema.GroupKind) Feature { return Feature("admission of " + kind.String()) }

// Lacks has why an API server is known to lack a feature. Nothing is known to be missing if it is nil.
type Lacks map[Feature]string

// The limits of WhileAnswers: how long an API server may not answer, which is longer than it takes to restart,
// and the time between two questions.
const (
	Silence  = 30 * time.Second
	question = Silence / 10
)

// WhileAnswers is WhileRuns for an API server whose end is no event. Alive asks it for an answer, and the
// server has ended if none of the answers within Silence is good. The time for which this process is paused
// does not count.
func WhileAnswers(ctx context.Context, alive, do func(context.Context) error) error {
	return until(ctx, func(ctx context.Context) error { return silence(ctx, alive) }, do)
}

// silence asks until no answer within Silence is good, and returns the last error, or nil when ctx is done. It does not
// wait for an answer before the next question: an answer may be slow, and one that a lost connection never brings must
// not hide the others.
func silence(ctx context.Context, alive func(context.Context) error) error {
	ticker := time.NewTicker(question)
	defer ticker.Stop()
	answers := make(chan error)
	last := errors.New("it did not answer")
	for asked := 0; asked < int(Silence/question); {
		select {
		case <-ctx.Done():
			return nil
		case err := <-answers:
			if err == nil {
				asked = 0
			} else {
				last = err
			}
		case <-ticker.C: // a paused process receives one of them
			asked++
			go func() {
				err := alive(ctx)
				select {
				case answers <- err:
				case <-ctx.Done():
				}
			}()
		}
	}
	return fmt.Errorf("for %s, each request failed: %w", Silence, last)
}
