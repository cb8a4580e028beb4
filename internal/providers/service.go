package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// byService serves the Hooks through a Service in the cluster.
func (c connection) byService(ctx context.Context) (*apiserver.Target, error) {
	reference, err := c.image(ctx)
	if err != nil {
		return nil, err
	}
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	through, err := newInCluster(c.Config, c.Run, reference, hooks)
	if err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	c.Progress("starting the relay pod in namespace " + through.namespace)
	if err := through.start(ctx); err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	c.Progress("webhooks by service, at " + through.host())
	options := c.options(hooks)
	options.Transport, options.ClientConfig, options.HooksErr, options.HookAddress = framework.TransportService, through.clientConfig, through.err, through.hookAddress()
	opened, err := apiserver.New(ctx, options)
	if err != nil {
		return nil, errors.Join(err, through.remove(context.WithoutCancel(ctx)), hooks.Close())
	}
	opened.AfterClose(func(context.Context) error {
		through.close()
		return hooks.Close()
	})
	return opened, nil
}

// image returns the image of the relay. If none is given, it builds one and loads it
// into a kind cluster; the error is an ErrImageNeeded for any other cluster.
func (c connection) image(ctx context.Context) (string, error) {
	if c.transport.HookImage != "" {
		return c.transport.HookImage, nil
	}
	if c.cluster == nil {
		return "", fmt.Errorf("use transport service: %w: the cluster is not a kind cluster of this machine, into which an image can be loaded; "+
			"create one with `admissiontest image --push REF` and give it with --hook-image REF", ErrImageNeeded)
	}
	tag, err := LoadImage(ctx, c.cluster, c.Progress)
	if err != nil {
		return "", fmt.Errorf("use transport service: %w", err)
	}
	return tag, nil
}

// LoadImage builds the image and loads it into the nodes of a cluster.
func LoadImage(ctx context.Context, into *kind.Cluster, progress func(string)) (string, error) {
	built, err := BuildImage(ctx, ImageOptions{Progress: progress})
	if err != nil {
		return "", err
	}
	tag, err := ImageTag(built)
	if err != nil {
		return "", err
	}
	dir, err := userfile.MkdirTemp("admissiontest-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	archive := filepath.Join(dir, "image.tar")
	if err := WriteImage(built, tag, archive); err != nil {
		return "", err
	}
	progress("loading image " + tag + " into kind cluster " + into.Name())
	return tag, into.LoadImage(ctx, archive)
}
