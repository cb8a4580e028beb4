// Package targettest has a target that is no API server, for tests. They embed its types, and replace the
// methods that matter. A [Provider] provides one that answers by the names of objects.
package targettest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Target is a target.Target without optional parts. Its methods do nothing and return no error.
type Target struct {
	// Sandbox is what NewSandbox returns, and what answers requests.
	target.Sandbox
}

// RunID returns "fake".
func (Target) RunID() string { return "fake" }

// Info returns the zero value.
func (Target) Info() framework.TargetInfo { return framework.TargetInfo{} }

// Namespaced returns true.
func (Target) Namespaced(schema.GroupVersionKind) (bool, error) { return true, nil }

// Optional returns no part.
func (Target) Optional() target.Optional { return target.Optional{} }

// NewSandbox returns the Sandbox.
func (t Target) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	return t.Sandbox, nil
}

// InstallForRun installs nothing.
func (Target) InstallForRun(context.Context, []map[string]any) error { return nil }

// WaitUntilEffective does not wait.
func (Target) WaitUntilEffective(context.Context, []map[string]any) error { return nil }

// Alive returns nil.
func (Target) Alive(context.Context) error { return nil }

// Close does nothing.
func (Target) Close(context.Context) error { return nil }

// Sandbox is a target.Sandbox whose methods do nothing and return no error. Requests succeed.
type Sandbox struct{}

// Info returns the zero value.
func (Sandbox) Info() framework.TargetInfo { return framework.TargetInfo{} }

// Do returns code 200 without an object.
func (Sandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	var result framework.Result
	result.Status.Code = 200
	return result, nil
}

// Send is Do.
func (s Sandbox) Send(ctx context.Context, request framework.Request) (framework.Result, error) {
	return s.Do(ctx, request)
}

// Install installs nothing.
func (Sandbox) Install(context.Context, map[string]any, map[string]hook.Script) error { return nil }

// Delete deletes nothing.
func (Sandbox) Delete(context.Context, schema.GroupVersionKind, string) error { return nil }

// Grant does nothing.
func (Sandbox) Grant(context.Context, []framework.Request) error { return nil }

// WaitForParams does not wait.
func (Sandbox) WaitForParams(context.Context) error { return nil }

// SetScript does nothing.
func (Sandbox) SetScript(string, hook.Script) error { return nil }

// Record returns nil.
func (Sandbox) Record() *hook.Recording { return nil }

// Uninstall removes nothing.
func (Sandbox) Uninstall(context.Context) error { return nil }

// Store stores nothing.
func (Sandbox) Store(context.Context, map[string]any) error { return nil }

// RemoveStored removes nothing.
func (Sandbox) RemoveStored(context.Context) error { return nil }

// Provider provides a server that answers as the name of the object in a request says: it refuses "refused", answers nothing
// in time for "open", fails for "broken", and accepts anything else.
type Provider struct {
	// Broken makes Start fail, Dies makes the server stop responding.
	Broken, Dies bool
	// Server is the version of the server. Empty means v1.36.3.
	Server string
}

// Check returns nil.
func (*Provider) Check(context.Context) error { return nil }

// Version returns "".
func (*Provider) Version(context.Context) (string, error) { return "", nil }

// Start returns the server.
func (p *Provider) Start(context.Context, target.StartOptions) (target.Target, error) {
	if p.Broken {
		return nil, errors.New("start fixture: it is broken")
	}
	hooks, err := hook.Start(context.Background(), hook.Options{})
	s := &server{hooks: hooks, dies: p.Dies, version: cmp.Or(p.Server, "v1.36.3")}
	return serverTarget{Target{Sandbox: s}, s}, err
}

// server is a target and its Sandbox. It answers as the name of the object says.
type server struct {
	Sandbox

	hooks *hook.Server
	dies  bool
	// version is what the server reports.
	version string
}

func (s *server) Record() *hook.Recording { return s.hooks.Record("fixture") }

func (s *server) Do(_ context.Context, request framework.Request) (framework.Result, error) {
	if s.dies {
		return framework.Result{}, fmt.Errorf("fixture: %w", framework.ErrNoResponse)
	}
	status := func(code int32) framework.Result {
		return framework.Result{Status: metav1.Status{Code: code, Message: "by the fixture"}}
	}
	switch request.Name {
	case "refused":
		return status(http.StatusForbidden), nil
	case "broken":
		return framework.Result{}, errors.New("fixture: unknown problem")
	case "open":
		return framework.Result{}, fmt.Errorf("fixture: %w", framework.ErrTimeout)
	default:
		return status(http.StatusCreated), nil
	}
}

// serverTarget is the target of a server.
type serverTarget struct {
	Target

	server *server
}

func (t serverTarget) Info() framework.TargetInfo {
	return framework.TargetInfo{Kind: framework.TargetKubeconfig, ServerVersion: t.server.version}
}

func (t serverTarget) Alive(context.Context) error {
	if t.server.dies {
		return fmt.Errorf("fixture: %w", framework.ErrNoResponse)
	}
	return nil
}

func (t serverTarget) Close(context.Context) error { return t.server.hooks.Close() }
