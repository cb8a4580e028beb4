package providers

import (
	"context"
	"errors"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/internal/engine"
)

// target makes a cluster.Target an engine.Target.
type target struct {
	*cluster.Target
	// kubeConfig is as in engine.Optional.
	kubeConfig []byte
	// server is the API server on this machine that belongs to the target alone, or nil.
	server *envtest.Server
	// closers end what was started for the target, in their order, after it is closed.
	closers []func(context.Context) error
}

// NewSandbox creates a Sandbox. See engine.Target.
func (t *target) NewSandbox(ctx context.Context, options engine.SandboxOptions) (engine.Sandbox, error) {
	sandbox, err := t.Target.NewSandbox(ctx, cluster.SandboxOptions(options))
	if err != nil {
		return nil, err
	}
	return sandbox, nil
}

// Optional returns the parts that a Target can lack. See engine.Target.
func (t *target) Optional() engine.Optional {
	address := t.HookAddress()
	optional := engine.Optional{
		OtherRuns: t.OtherRuns, HookAddress: &address, ForeignRequests: t.ForeignRequests,
		Plugins: t.Plugins, Metrics: t.Metrics, KubeConfig: t.kubeConfig, Explain: t.Explain,
	}
	if t.Shared() {
		optional.Confined = t.Confined
	}
	if slices.Contains(t.Info().Capabilities, framework.CapabilityAudit) {
		optional.Audit = t.Audit
	}
	if t.server != nil {
		optional.WriteFile, optional.RemoveFile = t.server.WriteFile, t.server.RemoveFile
	}
	return optional
}

// Close closes the target and then ends what was started for it.
func (t *target) Close(ctx context.Context) error {
	errs := []error{t.Target.Close(ctx)}
	for _, end := range t.closers {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}
