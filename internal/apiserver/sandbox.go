package apiserver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/target"
)

// SandboxOptions configure a Sandbox: see target.SandboxOptions.
type SandboxOptions = target.SandboxOptions

// SystemNamespaces returns the namespaces that every API server has.
func SystemNamespaces() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
}

// Sandbox is a part of an API server for one scenario: a namespace, and webhook
// configurations and policies that see only the requests of the scenario, unless it is Open. Its methods
// can be called by several goroutines at the same time.
type Sandbox struct {
	target *Target
	scope  *install.Scope
	users  func(name string) bool
}

// NewSandbox creates a Sandbox, with its namespace. See target.Target.
func (t *Target) NewSandbox(ctx context.Context, options SandboxOptions) (target.Sandbox, error) {
	if options.Open && !t.options.Disposable {
		return nil, fmt.Errorf("create sandbox %s: %w: without isolation, it needs an API server that ends with the run", options.ID, framework.ErrForeign)
	}
	if options.Open {
		if _, err := t.fences.Namespace(ctx); err != nil {
			return nil, err
		}
	}
	if t.sign != nil {
		if err := t.sign.open(ctx); err != nil {
			return nil, err
		}
	}
	t.hooks.SetUserFilter(options.ID, options.Users)
	scope, err := t.installer.NewScope(ctx, options.ID, options.Conversion)
	if err != nil {
		return nil, err
	}
	scope.Open, scope.Accounts = options.Open, options.Accounts
	scope.Requests, scope.DryRuns = options.Requests, options.DryRuns
	for _, request := range options.Requests {
		if resolved, err := t.client.Resources.Resolve(request); err == nil { // sending it reports the error
			t.fences.Note(resolved)
		}
	}
	for _, namespace := range append(SystemNamespaces(), options.ID) {
		if err := t.installer.DefaultAccount(ctx, scope, namespace); err != nil {
			return nil, err
		}
	}
	return &Sandbox{target: t, scope: scope, users: options.Users}, nil
}

// Info describes the API server. See framework.Target.
func (s *Sandbox) Info() framework.TargetInfo { return s.target.Info() }

// Install creates one object, or replaces the object of the same name. Webhook
// configurations and policies are narrowed to the Sandbox and get its ID as prefix of
// their names. Webhooks without a clientConfig become Hooks with the scripts of their
// names. A namespaced object without a namespace gets that of the Sandbox.
//
// The API server acts on it after Target.WaitUntilEffective.
func (s *Sandbox) Install(ctx context.Context, manifest map[string]any, scripts map[string]hook.Script) error {
	if kind, _ := object.Kind(manifest); kind.Kind != "CustomResourceDefinition" { // the cluster can have it: see install.Installer.NewCRD
		if err := s.target.confinedManifest(s.scope.ID, manifest); err != nil {
			return err
		}
	}
	if err := s.target.installer.Install(ctx, s.scope, manifest, scripts); err != nil {
		return err
	}
	for _, p := range s.target.installer.Params(s.scope) {
		if err := s.target.fences.Watch(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// WaitForParams returns when the policies of the API server know each paramKind of the Sandbox's policies, and
// see each parameter as it is now. Without it, a policy can decide by an old parameter, or by none: kube-apiserver
// reads parameters late, and some no more (see docs/findings.md).
//
// The error is a framework.ErrTimeout if the API server's policies do not see a parameter.
func (s *Sandbox) WaitForParams(ctx context.Context) error {
	return s.target.fences.WaitForParams(ctx, s.target.installer.Params(s.scope))
}

// Delete deletes an object that Install installed. It is not an error if the object
// does not exist.
func (s *Sandbox) Delete(ctx context.Context, kind schema.GroupVersionKind, name string) error {
	return s.target.installer.Delete(ctx, s.scope, kind, name)
}

// Grant gives the user of each Request the right to send it, by roles for the kinds of the Requests.
func (s *Sandbox) Grant(ctx context.Context, requests []framework.Request) error {
	return s.target.installer.Grant(ctx, s.scope, requests)
}

// SetScript replaces the script of a webhook. See hook.Server.SetScript.
func (s *Sandbox) SetScript(webhook string, script hook.Script) error {
	return s.target.hooks.SetScript(s.scope.ID, webhook, script)
}

// Do sends one Request. The Trace of the Result has the webhook calls that began before
// the response; calls for another request of the Sandbox that is sent at the same time
// are among them. A Request that Target.Confined refuses is not sent. An error of a Meanwhile function is returned with the Result. See
// framework.Target.
func (s *Sandbox) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	recording := s.Record()
	defer recording.Stop()
	result, err := s.Send(ctx, request)
	if result.AuditID == "" {
		return result, err // nothing was sent
	}
	recording.Wait(ctx)
	result.Trace = recording.Calls()
	if err != nil {
		return result, err
	}
	return result, recording.Err()
}

// Send is Do without a recording: the Result has no Trace. It is for one of many Requests that are sent
// at the same time, whose calls are in another recording.
func (s *Sandbox) Send(ctx context.Context, request framework.Request) (framework.Result, error) {
	resolved, err := s.target.client.Resources.Resolve(request)
	if err != nil {
		return framework.Result{}, err
	}
	if err := s.target.confined(s.scope.ID, resolved); err != nil {
		return framework.Result{}, err
	}
	if err := s.target.fences.Effective(resolved); err != nil {
		return framework.Result{}, err
	}
	result, err := s.target.send(ctx, resolved)
	if err == nil {
		s.target.installer.Note(s.scope, resolved, result)
	}
	return result, err
}

// Record records the webhook calls of the Sandbox until Stop, those for several
// requests for instance.
func (s *Sandbox) Record() *hook.Recording { return s.target.hooks.Record(s.scope.ID) }

// Store is Install for an object that only exists to be the object of a Request: it is stored as the
// manifest says. A webhook configuration or policy is not narrowed, so it decides about every request to the
// API server until Uninstall: it is for a Disposable API server on which no other Sandbox is in use.
func (s *Sandbox) Store(ctx context.Context, manifest map[string]any) error {
	if err := s.target.confinedManifest(s.scope.ID, manifest); err != nil {
		return err
	}
	if kind, err := object.Kind(manifest); err != nil || !s.target.options.Disposable && install.IsAdmission(kind) {
		return errors.Join(err, fmt.Errorf("store %s: %w: it would decide about requests of other clients: use a server that ends with the run, such as target envtest", object.Describe(manifest), framework.ErrForeign))
	}
	return s.target.installer.Store(ctx, s.scope, manifest)
}

// RemoveStored deletes, after Uninstall, all cluster-scoped objects of the Sandbox whose names do not contain its ID, and
// waits until they are gone.
func (s *Sandbox) RemoveStored(ctx context.Context) error {
	return s.target.installer.RemoveStored(ctx, s.scope)
}

// Uninstall deletes the webhook configurations and policies, and unregisters the Hooks.
// The rest is removed by Target.Close; of an Open Sandbox, what it created outside of its
// namespaces is deleted too. The Sandbox can be used again.
func (s *Sandbox) Uninstall(ctx context.Context) error {
	err := s.target.installer.Uninstall(ctx, s.scope)
	s.target.hooks.SetUserFilter(s.scope.ID, s.users)
	return err
}

// Confined returns a framework.ErrForeign if the Sandbox of that ID may not send a
// Request: because it names a namespace or a cluster-scoped object without the ID in its
// name, or because the object would affect other clients. On a Disposable API server every Request is.
func (t *Target) Confined(id string, request framework.Request) error {
	resolved, err := t.client.Resources.Resolve(request)
	if err != nil {
		return nil //nolint:nilerr // Do refuses it
	}
	return t.confined(id, resolved)
}

func (t *Target) confined(id string, request client.Request) error {
	if t.options.Disposable {
		return nil
	}
	return install.Confine(id, request.Resource, request.Request)
}

// confinedManifest is Confined for an object to install.
func (t *Target) confinedManifest(id string, manifest map[string]any) error {
	kind, err := object.Kind(manifest)
	if err != nil || t.options.Disposable {
		return err
	}
	resource, err := t.client.Resources.Of(kind)
	if err != nil {
		return nil //nolint:nilerr // Install refuses it
	}
	return install.ConfineInstalled(id, resource, manifest)
}
