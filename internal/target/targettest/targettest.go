// Package targettest has a target that is no API server, for tests. They embed its types, and replace the
// methods that matter.
package targettest

import (
	"context"

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
func (Sandbox) RemoveStored(context.Context, map[string]any) error { return nil }
