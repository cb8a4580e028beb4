package providers

import (
	"context"
	"errors"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
)

// clusterTarget makes a apiserver.Target a target.Target.
type clusterTarget struct {
	*apiserver.Target
	// kubeConfig is as in target.Optional.
	kubeConfig []byte
	// server is the API server on this machine that belongs to the target, or nil.
	server *envtest.Server
	// underTest is true if what is installed on the API server besides the run's own is under test: then the target has
	// no Foreign.
	underTest bool
	// closers end what was started for the target, in their order, after it is closed.
	closers []func(context.Context) error
}

// NewSandbox creates a Sandbox. See target.Target.
func (t *clusterTarget) NewSandbox(ctx context.Context, options target.SandboxOptions) (target.Sandbox, error) {
	sandbox, err := t.Target.NewSandbox(ctx, options)
	if err != nil {
		return nil, err
	}
	return sandbox, nil
}

// Optional returns the parts that a Target can lack. See target.Target.
func (t *clusterTarget) Optional() target.Optional {
	optional := t.Target.Optional()
	optional.KubeConfig = t.kubeConfig
	if t.underTest {
		optional.Foreign = nil
	}
	if t.server != nil {
		optional.WriteFile, optional.RemoveFile = t.server.WriteFile, t.server.RemoveFile
		optional.Server, optional.Strangers = t.server, t.strangers
	}
	return optional
}

// Alive returns an error if the API server does not respond. See target.Target.
func (t *clusterTarget) Alive(ctx context.Context) error { return t.explain(t.Target.Alive(ctx)) }

// explain adds to an error why a server on this machine ended.
func (t *clusterTarget) explain(err error) error {
	if t.server != nil {
		return t.server.Explain(err)
	}
	return err
}

// strangers returns what clients other than the API server did to the Hooks and to the API server.
func (t *clusterTarget) strangers() hook.Strangers {
	all := t.Target.Optional().Strangers()
	all.Lost += t.server.Lost()
	return all
}

// Close closes the target and then ends what was started for it. It does not wait for an API server that is
// gone.
func (t *clusterTarget) Close(ctx context.Context) error {
	var closed error
	answers := func(ctx context.Context) error { return t.explain(t.Answers(ctx)) }
	err := target.WhileAnswers(ctx, answers, func(ctx context.Context) error { // which ends the channel to a relay, too
		closed = t.Target.Close(ctx)
		return closed
	})
	errs := []error{closed}
	if errors.Is(err, target.ErrGone) {
		errs = []error{err, closed}
	}
	for _, end := range t.closers {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}
