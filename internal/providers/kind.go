package providers

import (
	"context"
	"errors"
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Kind provides a kind cluster: one that it creates and deletes, or an existing one. It
// starts no server with a profile: Start returns target.ErrNoProfiles.
type Kind struct {
	// Cluster configures the cluster to create. Its Progress is replaced by Progress.
	Cluster kind.Options
	// Use is the name of an existing cluster to use instead. It is never deleted. Empty
	// creates a cluster.
	Use string
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Check returns nil: the user of a kind cluster is its administrator.
func (Kind) Check(context.Context, []scenario.Scenario) error { return nil }

// Version returns "": it is not known before the cluster runs.
func (Kind) Version(context.Context) (string, error) { return "", nil }

// Start creates or finds the cluster and returns it as a target. It returns the errors of
// kind.Create and kind.Use, and an ErrWebhookUnreachable if the API server cannot call a
// Hook. If it fails, a cluster that it created is deleted.
func (k Kind) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	if k.Progress == nil {
		k.Progress = func(string) {}
	}
	found, err := k.cluster(ctx)
	if err != nil {
		return nil, err
	}
	started, err := k.start(ctx, found, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use kind cluster %s: %w", found.Name(), err), k.end(context.WithoutCancel(ctx), found))
	}
	return &kindTarget{clusterTarget: started, provider: k, cluster: found}, nil
}

func (k Kind) start(ctx context.Context, found *kind.Cluster, options target.StartOptions) (*clusterTarget, error) {
	config, err := found.RESTConfig()
	if err != nil {
		return nil, err
	}
	if err := apiserver.WaitForResponse(ctx, config, FirstResponse); err != nil {
		return nil, err
	}
	opened, err := connection{transport: k.Transport, cluster: found, Options: apiserver.Options{
		Config: config, Kind: framework.TargetKind, Progress: k.Progress,
		Endpoints: options.Endpoints, Foreign: options.AllowForeign, Patience: options.Patience, Disposable: k.Use == "",
	}}.open(ctx)
	if err != nil {
		return nil, err
	}
	opened.kubeConfig = []byte(found.Kubeconfig())
	return opened, nil
}

// cluster creates or finds the cluster.
func (k Kind) cluster(ctx context.Context) (*kind.Cluster, error) {
	if k.Use != "" {
		return kind.Use(ctx, k.Use)
	}
	options := k.Cluster
	options.Progress = k.Progress
	return kind.Create(ctx, options)
}

// end deletes the cluster, unless it existed before.
func (k Kind) end(ctx context.Context, found *kind.Cluster) error {
	if k.Use != "" {
		return found.Release()
	}
	k.Progress("deleting kind cluster " + found.Name())
	return found.Delete(ctx)
}

// kindTarget is a target whose cluster ends with it.
type kindTarget struct {
	*clusterTarget
	provider Kind
	cluster  *kind.Cluster
}

// Close closes the target, and deletes the cluster unless it existed before.
func (t *kindTarget) Close(ctx context.Context) error {
	return errors.Join(t.clusterTarget.Close(ctx), t.provider.end(ctx, t.cluster))
}
