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

// Kind provides a kind cluster that it creates and deletes. It starts no server with a
// profile: Start returns target.ErrNoProfiles.
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
	create.Progress, create.Logs = k.Progress, k.Logs
	made, err := kind.Create(ctx, create)
	if err != nil {
		return nil, err
	}
	started, err := k.start(ctx, made, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use kind cluster %s: %w", made.Name(), err), k.end(context.WithoutCancel(ctx), made, true))
	}
	started.closers = append(started.closers, func(ctx context.Context) error {
		return k.end(ctx, made, k.Failed != nil && k.Failed())
	})
	return started, nil
}

func (k Kind) start(ctx context.Context, made *kind.Cluster, options target.StartOptions) (*clusterTarget, error) {
	config, err := made.RESTConfig()
	if err != nil {
		return nil, err
	}
	if err := apiserver.WaitForResponse(ctx, config, FirstResponse); err != nil {
		return nil, err
	}
	opened, err := connection{transport: k.Transport, cluster: made, Options: apiserver.Options{
		Config: config, Kind: framework.TargetKind, Progress: k.Progress,
		Endpoints: options.Endpoints, Foreign: options.AllowForeign, Patience: options.Patience, Disposable: true,
	}}.open(ctx)
	if err != nil {
		return nil, err
	}
	opened.kubeConfig = []byte(made.Kubeconfig())
	return opened, nil
}

// logsLimit limits the export of logs.
const logsLimit = time.Minute

// end deletes the cluster. If something failed, it first writes the logs of the nodes, if Logs is set. Missing logs are
// not an error.
func (k Kind) end(ctx context.Context, made *kind.Cluster, failed bool) error {
	if failed && k.Logs != "" {
		limited, cancel := context.WithTimeout(ctx, logsLimit)
		defer cancel()
		k.Progress("exporting logs of kind cluster " + made.Name() + " to " + k.Logs)
		if err := made.ExportLogs(limited, k.Logs); err != nil {
			k.Progress("some logs are missing: " + report.FirstLine(err.Error()))
		}
	}
	k.Progress("deleting kind cluster " + made.Name())
	return made.Delete(ctx)
}
