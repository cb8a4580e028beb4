package providers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Kind provides a kind cluster, which it creates and deletes. It
// starts no server with a profile: Start returns target.ErrNoProfiles.
type Kind struct {
	// Cluster configures the cluster to create. Its Progress is replaced by Progress.
	Cluster kind.Options
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Logs is a directory for the logs of the nodes. They are exported when the target is
	// closed and Failed returns true. Empty exports none.
	Logs string
	// Failed reports whether anything failed. Nil means no.
	Failed func() bool
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Check returns nil: the user of a kind cluster is its administrator.
func (Kind) Check(context.Context, []scenario.Scenario) error { return nil }

// Version returns "": it is not known before the cluster runs.
func (Kind) Version(context.Context) (string, error) { return "", nil }

// Start creates the cluster and returns it as a target. It returns the errors of
// kind.Create, and an ErrWebhookUnreachable if the API server cannot call a
// Hook. If it fails, the cluster is deleted.
func (k Kind) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	if k.Progress == nil {
		k.Progress = func(string) {}
	}
	cluster := k.Cluster
	cluster.Progress = k.Progress
	found, err := kind.Create(ctx, cluster)
	if err != nil {
		return nil, err
	}
	started, err := k.start(ctx, found, options)
	if err != nil {
		k.exportLogs(context.WithoutCancel(ctx), found)
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
		Endpoints: options.Endpoints, Foreign: options.AllowForeign, Patience: options.Patience, Disposable: true,
	}}.open(ctx)
	if err != nil {
		return nil, err
	}
	opened.kubeConfig = []byte(found.Kubeconfig())
	return opened, nil
}

// logsLimit limits the export of logs.
const logsLimit = time.Minute

// exportLogs writes the logs of the nodes, if Logs is set. Missing logs are not an error.
func (k Kind) exportLogs(ctx context.Context, found *kind.Cluster) {
	if k.Logs == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logsLimit)
	defer cancel()
	k.Progress("exporting logs of kind cluster " + found.Name() + " to " + k.Logs)
	if err := found.ExportLogs(ctx, k.Logs); err != nil {
		k.Progress("some logs are missing: " + report.FirstLine(err.Error()))
	}
}

// end deletes the cluster.
func (k Kind) end(ctx context.Context, found *kind.Cluster) error {
	k.Progress("deleting kind cluster " + found.Name())
	return found.Delete(ctx)
}

// kindTarget is a target whose cluster ends with it.
type kindTarget struct {
	*clusterTarget
	provider Kind
	cluster  *kind.Cluster
}

// Close closes the target, and deletes the cluster.
func (t *kindTarget) Close(ctx context.Context) error {
	err := t.clusterTarget.Close(ctx)
	if t.provider.Failed != nil && t.provider.Failed() || err != nil {
		t.provider.exportLogs(ctx, t.cluster)
	}
	return errors.Join(err, t.provider.end(ctx, t.cluster))
}
