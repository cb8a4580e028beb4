package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/framework/cluster/service"
	"github.com/admissiontest/admissiontest/framework/cluster/service/image"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// byService serves the Hooks through a Service in the cluster.
func (o opening) byService(ctx context.Context) (*remote, error) {
	reference, err := o.image(ctx)
	if err != nil {
		return nil, err
	}
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	through, err := service.Start(ctx, service.Options{
		Config: o.config, Run: o.run, Image: reference, Hooks: hooks, Progress: o.progress,
	})
	if err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	o.progress("webhooks by service, at " + through.Host())
	target, err := cluster.New(ctx, cluster.Options{
		Config: o.config, Kind: o.kind, Run: o.run, Hooks: hooks, Disposable: o.disposable,
		ClientConfig: through.ClientConfig, HooksErr: through.Err, HooksAt: through.At(), HookService: o.cluster != nil,
		Transport: framework.TransportService, Progress: o.progress,
	})
	if err != nil {
		return nil, errors.Join(err, through.Close(context.WithoutCancel(ctx)), hooks.Close())
	}
	return &remote{Target: target, after: []func(context.Context) error{
		through.Close, func(context.Context) error { return hooks.Close() },
	}}, nil
}

// image returns the image to run in the cluster, which it builds and loads where
// none is given and it can. The error is an ErrImageNeeded where it cannot.
func (o opening) image(ctx context.Context) (string, error) {
	if o.transport.HookImage != "" {
		return o.transport.HookImage, nil
	}
	if o.cluster == nil {
		return "", fmt.Errorf("use transport service: %w is given, and the cluster is no kind cluster of this machine, into which one could be loaded; "+
			"make one with `admissiontest image --push REF` and give it with --hook-image REF", ErrImageNeeded)
	}
	tag, err := loadImage(ctx, o.cluster, o.progress)
	if err != nil {
		return "", fmt.Errorf("use transport service: %w", err)
	}
	return tag, nil
}

// loadImage builds the image and loads it into the nodes of a cluster.
func loadImage(ctx context.Context, into *kind.Cluster, progress func(string)) (string, error) {
	built, err := image.Build(ctx, image.Options{Progress: progress})
	if err != nil {
		return "", err
	}
	tag, err := image.Tag(built)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "admissiontest-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	archive := filepath.Join(dir, "image.tar")
	if err := image.WriteTarball(built, tag, archive); err != nil {
		return "", err
	}
	progress("loading image " + tag + " into kind cluster " + into.Name())
	return tag, into.LoadImage(ctx, archive)
}
