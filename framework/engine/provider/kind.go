package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Kind gives a cluster of kind: one that it creates and deletes, or one that
// there is. It gives no server profile: Start returns engine.ErrNoProfiles for one.
type Kind struct {
	// Cluster says which cluster to create. Its Progress is set by this Progress.
	Cluster kind.Options
	// Use is the name of a cluster that there is, to use instead. It is never
	// deleted. Empty creates one.
	Use string
	// Keep leaves the cluster that was created.
	Keep bool
	// Transport is how the API server reaches the Hooks. The zero value takes what
	// works.
	Transport Transport
	// Logs is a folder that the nodes' logs go to when the target is closed and
	// Failed is true. Empty exports none.
	Logs string
	// Failed says whether anything failed. Nil is no.
	Failed func() bool
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)
}

// Start creates or finds the cluster and returns it as a target. Errors are those
// of kind.Create and kind.Use, and an ErrNoWay where the API server reaches no
// Hook by the transport. Where it fails, a cluster that it created is deleted.
func (k Kind) Start(ctx context.Context, profile *scenario.Server) (engine.Target, error) {
	if profile != nil {
		return nil, engine.ErrNoProfiles
	}
	if k.Progress == nil {
		k.Progress = func(string) {}
	}
	found, err := k.cluster(ctx)
	if err != nil {
		return nil, err
	}
	config, err := found.RESTConfig()
	if err == nil {
		err = RESTConfig{Config: config}.knock(ctx)
	}
	var target *remote
	if err == nil {
		target, err = opening{
			config: config, kind: framework.TargetKind, transport: k.Transport, cluster: found, progress: k.Progress,
			disposable: k.Use == "" && !k.Keep,
		}.open(ctx)
	}
	if err != nil {
		k.export(context.WithoutCancel(ctx), found)
		return nil, errors.Join(fmt.Errorf("use kind cluster %s: %w", found.Name(), err), k.end(context.WithoutCancel(ctx), found))
	}
	return &kindTarget{remote: target, provider: k, cluster: found}, nil
}

// cluster creates or finds the cluster.
func (k Kind) cluster(ctx context.Context) (*kind.Cluster, error) {
	if k.Use != "" {
		return kind.Use(ctx, k.Use)
	}
	options := k.Cluster
	options.Progress, options.Logs = k.Progress, k.Logs
	if k.Keep && options.Name == "" {
		options.Name = kind.MakeUpName(kind.Prefix) // not one that ends with a run
	}
	return kind.Create(ctx, options)
}

// logsLimit bounds the export of logs.
const logsLimit = time.Minute

// export writes the nodes' logs, where they are asked for. What is missing of
// them decides about nothing.
func (k Kind) export(ctx context.Context, found *kind.Cluster) {
	if k.Logs == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logsLimit)
	defer cancel()
	k.Progress("exporting logs of kind cluster " + found.Name() + " to " + k.Logs)
	if err := found.ExportLogs(ctx, k.Logs); err != nil {
		k.Progress("not all of them: " + firstLine(err.Error()))
	}
}

// end deletes the cluster unless it is to stay.
func (k Kind) end(ctx context.Context, found *kind.Cluster) error {
	switch {
	case k.Use != "":
		return found.Release()
	case k.Keep:
		k.Progress(fmt.Sprintf("kind cluster %[1]s stays: kind export kubeconfig --name %[1]s leads kubectl to it, kind delete cluster --name %[1]s deletes it", found.Name()))
		return found.Release()
	default:
		k.Progress("deleting kind cluster " + found.Name())
		return found.Delete(ctx)
	}
}

// kindTarget is a target whose cluster may end with it.
type kindTarget struct {
	*remote
	provider Kind
	cluster  *kind.Cluster
}

// Close ends the target, and its cluster unless that is to stay.
func (t *kindTarget) Close(ctx context.Context) error {
	err := t.remote.Close(ctx)
	if t.provider.Failed != nil && t.provider.Failed() || err != nil {
		t.provider.export(ctx, t.cluster)
	}
	return errors.Join(err, t.provider.end(ctx, t.cluster))
}
