package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/flags"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/served"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// serveFlags are the flags of the command serve.
type serveFlags struct {
	flags.Assets
	noBuild    bool
	background bool
	idle       time.Duration
}

// defaultIdle is the default of --idle.
const defaultIdle = 15 * time.Minute

func (a *app) serveCommand() *cobra.Command {
	f := &serveFlags{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Keep an API server ready for the next runs",
		Long: `Start an API server and etcd, as run does, and keep them for later runs of this user.

A run uses the kept server instead of starting one if it needs the same: the same
admissiontest, Kubernetes version and plugins. Scenarios with custom flags, or without
isolation, still start their own server. Only one run at a time uses the kept server;
another run at the same time starts its own. When a run ends, all changes made during the
run are undone, including those of other clients.

The server stops on an interrupt, on "admissiontest serve stop", and when no run has used
it for the time that --idle sets.`,
		Example: `  admissiontest serve --background && admissiontest run my-scenarios/
  admissiontest serve --plugin ./pkg/owner
  admissiontest serve kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get namespaces
  admissiontest serve stop`,
		Args: noArguments,
	}
	command.RunE = a.action(func(ctx context.Context, _ []string) error { return a.serve(ctx, f, command) })
	f.Add(command)
	f.Plugins.Add(command)
	set := command.Flags()
	set.BoolVar(&f.noBuild, "no-build", false, "if no control-plane binaries are found, fail instead of building them")
	set.BoolVar(&f.background, "background", false, "return when the API server is ready, and keep it running in another process")
	set.DurationVar(&f.idle, "idle", defaultIdle, "stop when no run has used the API server for this time")
	command.AddCommand(a.serveListCommand(), a.serveKubeconfigCommand(), a.serveStopCommand())
	return command
}

// serve implements the command serve.
func (a *app) serve(ctx context.Context, f *serveFlags, command *cobra.Command) error {
	if f.idle <= 0 {
		return exit.Usagef("--idle %s: want a time such as 15m", f.idle)
	}
	if flags.Given(command, "plugin") != "" && flags.Given(command, "assets-dir") != "" {
		return exit.Usagef("--plugin cannot be combined with --assets-dir, whose kube-apiserver is built already")
	}
	options := f.Options(a.note)
	options.NoBuild, options.ObservePlugins = f.noBuild, !f.noBuild
	binaries, err := assets.Ensure(ctx, options)
	if err != nil {
		return err
	}
	key, err := served.Key(binaries)
	if err != nil {
		return err
	}
	if f.background {
		return a.serveInBackground(ctx, f, key)
	}
	a.note("starting API server v" + binaries.Version)
	err = served.Run(ctx, served.RunOptions{
		Options: served.Options{Assets: binaries, Profile: providers.DefaultProfile}, Key: key, Idle: f.idle, Ready: a.serveReady,
	})
	if running := (*served.RunningError)(nil); errors.As(err, &running) {
		return exit.Usagef("%w; stop it with: admissiontest serve stop %s", err, key)
	}
	if err == nil {
		a.note("the API server has stopped: on request, or because no run used it for " + f.idle.String())
	}
	return err
}

// serveReady prints a line which says that runs can use the server. serveInBackground waits for
// this line.
func (a *app) serveReady(info served.Info) {
	_, _ = fmt.Fprintf(a.Stdout, "%s is ready for runs, %s\n", describeServed(info), info.Key)
}

// describeServed returns "API server v1.36.3 with Owner".
func describeServed(info served.Info) string {
	text := "API server v" + strings.TrimPrefix(info.Version, "v")
	if len(info.Plugins) > 0 {
		text += " with " + strings.Join(info.Plugins, ", ")
	}
	return text
}

func (a *app) serveListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the API servers that are kept", Args: noArguments,
		RunE: a.action(func(ctx context.Context, _ []string) error {
			all, err := served.Place{}.List(ctx)
			for _, info := range all {
				if _, err := fmt.Fprintf(a.Stdout, "%s  %s  %s, process %d, since %s\n",
					info.Key, describeServed(info), info.State, info.PID, info.Since.Format(time.RFC3339)); err != nil {
					return err
				}
			}
			if len(all) == 0 && err == nil {
				a.note("no API server is kept; start one with: admissiontest serve")
			}
			return err
		}),
	}
}

func (a *app) serveKubeconfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig [KEY]", Short: "Print the kubeconfig of an API server that is kept",
		Long: "Print the kubeconfig of an API server that is kept, for kubectl and your own programs.\nThe user is an administrator. KEY is the first word of a line of \"admissiontest serve\nlist\"; you can omit it if only one API server is kept.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.action(func(ctx context.Context, args []string) error {
			info, err := chooseServed(ctx, args)
			if err != nil {
				return err
			}
			if len(info.KubeConfig) == 0 {
				return exit.New(exit.Infrastructure, fmt.Errorf("print the kubeconfig of %s: it is not ready yet", describeServed(info)))
			}
			_, err = a.Stdout.Write(info.KubeConfig)
			return err
		}),
	}
}

func (a *app) serveStopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop [KEY]", Short: "Stop an API server that is kept",
		Long: "Stop an API server that is kept, and return when it has stopped. A run that uses it fails.\nKEY is the first word of a line of \"admissiontest serve list\"; you can omit it if only one\nAPI server is kept.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.action(func(ctx context.Context, args []string) error {
			info, err := chooseServed(ctx, args)
			if err != nil {
				return err
			}
			if err := (served.Place{}).Stop(ctx, info.Key); err != nil {
				return err
			}
			a.note("stopped " + describeServed(info))
			return nil
		}),
	}
}

// chooseServed returns the server whose key is the argument. Without an argument it returns the
// only server.
func chooseServed(ctx context.Context, args []string) (served.Info, error) {
	all, err := served.Place{}.List(ctx)
	var keys []string
	for _, info := range all {
		if len(args) == 1 && info.Key == args[0] {
			return info, nil
		}
		keys = append(keys, info.Key)
	}
	switch {
	case err != nil:
		return served.Info{}, err
	case len(all) == 0:
		return served.Info{}, exit.Usagef("no API server is kept; start one with: admissiontest serve")
	case len(args) == 1:
		return served.Info{}, exit.Usagef("no API server with the key %q is kept%s; there are %s", args[0], suggest.DidYouMean(args[0], keys), strings.Join(keys, ", "))
	case len(all) > 1:
		return served.Info{}, exit.Usagef("%d API servers are kept; want one of the keys %s: see admissiontest serve list", len(all), strings.Join(keys, ", "))
	}
	return all[0], nil
}
