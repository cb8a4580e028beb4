package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/providers"
)

func (a *app) serveCommand() *cobra.Command {
	f := &assetFlags{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Start an API server for your own programs and for runs",
		Long: `Start an API server and etcd, as run does, print a kubeconfig of an administrator on
standard output, and keep them running until an interrupt.

With "admissiontest run --kubeconfig FILE", scenarios run on this server. They can use all of
it, as on a server that a run starts. At its end a run removes what it created, but not what
its requests changed. The API server has no audit log and records no calls of plugins, so
scenarios that need these are unsupported.`,
		Example: `  admissiontest serve > kubeconfig &
  kubectl --kubeconfig kubeconfig get namespaces
  admissiontest run --kubeconfig kubeconfig my-scenarios/`,
		Args: noArguments,
	}
	command.RunE = a.action(func(ctx context.Context, _ []string) error { return a.serve(ctx, f) })
	f.add(command)
	f.plugins.add(command)
	return command
}

// serve implements the command serve.
func (a *app) serve(ctx context.Context, f *assetFlags) (err error) {
	if f.Dir != "" && len(f.plugins) > 0 {
		return usagef("--plugin cannot be combined with %s", builtAlready)
	}
	binaries, err := binaries.Ensure(ctx, f.options(a.note))
	if err != nil {
		return err
	}
	a.note("starting API server v" + binaries.Version)
	server, err := envtest.Start(ctx, envtest.Options{BinaryAssetsDirectory: binaries.Dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	kubeconfig, err := providers.MarkServed(server.KubeConfig)
	if err != nil {
		return err
	}
	if _, err := a.Stdout.Write(kubeconfig); err != nil {
		return err
	}
	a.note("the API server is ready; interrupt to end")
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-server.Ended():
		return server.Err()
	}
}
