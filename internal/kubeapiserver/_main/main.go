// This kube-apiserver is Kubernetes' own, with two additions: plugins of the user, which are
// compiled in, and the recording of the calls of all plugins. Without plugins and with the
// recording off, it behaves like cmd/kube-apiserver of the same version: the same flags, output,
// exit codes and signals. It has no endpoint /flagz.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"          // the log format JSON
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the version
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
)

// describeVariable is an environment variable. If it is not empty, the program prints the plugins
// of the user and ends.
const describeVariable = "ADMISSIONTEST_DESCRIBE_PLUGINS"

func main() {
	run := options.NewServerRunOptions()
	names, err := add(run.Admission.GenericAdmission)
	if os.Getenv(describeVariable) != "" {
		os.Exit(describe(names, err))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	decorate(run.Admission.GenericAdmission)
	os.Exit(cli.Run(command(run)))
}

// add adds the plugins of the user.
func add(o *genericoptions.AdmissionOptions) (map[string][]string, error) {
	s := observe.Server{Plugins: o.Plugins, Order: o.RecommendedPluginOrder, Off: o.DefaultOffPlugins}
	names, err := observe.Add(&s, packages())
	o.RecommendedPluginOrder, o.DefaultOffPlugins = s.Order, s.Off
	return names, err
}

// decorate makes each plugin record its calls if the variable says so.
func decorate(o *genericoptions.AdmissionOptions) {
	if os.Getenv(kubeapiserver.Variable) == "" {
		return
	}
	// The recorder must be the first decorator, so that it gets the plugin itself and not another
	// decorator.
	o.Decorators = append(admission.Decorators{admission.DecoratorFunc(new(observe.Recorder).Decorate)}, o.Decorators...)
}

// describe prints the plugins of the user by package, and returns the exit code.
func describe(names map[string][]string, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(names); err != nil {
		return 1
	}
	return 0
}

// command makes kube-apiserver's command. It does not use app.NewAPIServerCommand, because the
// options of that command cannot be changed.
func command(run *options.ServerRunOptions) *cobra.Command {
	ctx := server.SetupSignalContext()
	c := &cobra.Command{
		Use: "kube-apiserver",
		Long: `The Kubernetes API server validates and configures data
for the api objects which include pods, services, replicationcontrollers, and
others. The API Server services REST operations and provides the frontend to the
cluster's shared state through which all other components interact.`,
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := run.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
				return err
			}
			rest.SetDefaultWarningHandler(rest.NoWarnings{}) // of the server's own clients
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return serve(ctx, run, c.Flags()) },
		Args: func(c *cobra.Command, args []string) error {
			for _, arg := range args {
				if arg != "" {
					return fmt.Errorf("%q does not take any arguments, got %q", c.CommandPath(), args)
				}
			}
			return nil
		},
	}
	c.SetContext(ctx)
	sets := run.Flags()
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), c.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		c.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(c.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(c, sets, columns)
	return c
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, run *options.ServerRunOptions, flags *pflag.FlagSet) error {
	verflag.PrintAndExitIfRequested()
	gates := run.GenericServerRunOptions.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(run.Logs, gates); err != nil {
		return err
	}
	cliflag.PrintFlags(flags)
	completed, err := run.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	if metrics, ok := gates.(featuregate.MutableFeatureGate); ok {
		metrics.AddMetrics()
	} else {
		runtime.HandleError(fmt.Errorf("feature gates of type %T have no metrics", gates))
	}
	run.GenericServerRunOptions.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, completed)
}
