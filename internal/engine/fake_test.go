package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/target"
)

// fakeTarget is a Target with one Sandbox and no optional parts.
type fakeTarget struct {
	target.Target
	sandbox target.Sandbox
}

func (fakeTarget) Info() framework.TargetInfo                       { return framework.TargetInfo{} }
func (fakeTarget) Namespaced(schema.GroupVersionKind) (bool, error) { return true, nil }
func (fakeTarget) Optional() target.Optional                        { return target.Optional{} }

func (fakeTarget) WaitUntilEffective(context.Context, []map[string]any) error { return nil }

func (t fakeTarget) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	return t.sandbox, nil
}
