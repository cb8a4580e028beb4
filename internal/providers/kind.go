package providers

import (
	"context"
	"errors"
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Kind provides a kind cluster that it creates and deletes. It starts no server with a
// profile: Start returns target.ErrNoProfiles.
type Kind struct {
	// Cluster configures the cluster to create. Its Progress is replaced by Progress.
	Cluster kind.Options
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Check returns nil: the user of a kind cluster is its administrator.
func (Kind) Check(context.Context) error { return nil }

// Version returns "": it is not known before the cluster runs.
func (Kind) Version(context.Context) (string, error) { return "", nil }

// Start creates the cluster and returns it as a target, whose Close deletes it. It returns the errors of
// kind.Create, and an ErrWebhookUnreachable if the API server cannot call a
// Hook. If it fails, the cluster is deleted.
func (k Kind) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	if k.Progress == nil {
		k.Progress = func(string) {}
	}
	create := k.Cluster
	create.Progress = k.Progress
	made, err := kind.Create(ctx, create)
	if err != nil {
		return nil, err
	}
	end := func(ctx context.Context) error {
		k.Progress("deleting kind cluster " + made.Name())
		return made.Delete(ctx)
	}
	started, err := k.start(ctx, made, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use kind cluster %s: %w", made.Name(), err), end(context.WithoutCancel(ctx)))
	}
	started.AfterClose(end)
	return started, nil
}

func (k Kind) start(ctx context.Context, made *kind.Cluster, options target.StartOptions) (*apiserver.Target, error) {
	config, err := made.RESTConfig()
	if err != nil {
		return nil, err
	}
	return RESTConfig{
		Config: config, Transport: k.Transport, Progress: k.Progress, cluster: made,
		options: apiserver.Options{Kind: framework.TargetKind, Disposable: true, KubeConfig: []byte(made.Kubeconfig())},
	}.start(ctx, options)
}
