package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Target are the flags that choose where scenarios run.
type Target struct {
	// Assets are the control-plane binaries, and the plugins in them.
	Assets Assets
	// ObservePlugins is true if the calls of all admission plugins are recorded.
	ObservePlugins bool

	// name is an element of targets() once Check has been called.
	name      string
	cluster   Cluster
	kind      kindFlags
	transport transportFlags
	// disposable is providers.Kubeconfig.Disposable.
	disposable bool
}

// targets are the kinds of target.
func targets() []string {
	return []string{framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// Cluster returns the flags that choose an existing API server.
func (f *Target) Cluster() *Cluster { return &f.cluster }

// Add adds the flags to a command, except for the flags that AddPlugins adds.
func (f *Target) Add(command *cobra.Command) {
	command.Flags().StringVar(&f.name, "target", "", "where to run: envtest starts an API server on this machine, kind creates a cluster, kubeconfig uses an existing cluster (default: envtest, or kubeconfig if --kubeconfig or --context is given)")
	Complete(command, "target", targets()...)
	f.cluster.Add(command)
	command.Flags().BoolVar(&f.disposable, "disposable", false, "with --kubeconfig: the API server is only for tests and has no other clients, so scenarios can run whose configurations decide about all requests")
	f.transport.add(command)
	f.kind.add(command)
	f.Assets.Add(command)
}

// AddPlugins adds --plugin and --observe-plugins to a command.
func (f *Target) AddPlugins(command *cobra.Command) {
	f.Assets.Plugins.Add(command)
	command.Flags().BoolVar(&f.ObservePlugins, "observe-plugins", false, "with --target envtest: record the calls of all admission plugins and show them in timelines (default: only with --plugin, and on the servers of scenarios that expect such calls)")
}

// Check sets the target if --target is not given, and returns an error for flags that cannot be
// used with the target.
func (f *Target) Check(command *cobra.Command) error {
	given := func(names ...string) string { return Given(command, names...) }
	ofCluster, ofKind := given("kubeconfig", "context", "disposable", "report-configmap"), given("kind-cluster", "node-image", "kind-config")
	switch {
	case f.name == "" && ofCluster != "":
		f.name = framework.TargetKubeconfig
	case f.name == "":
		f.name = framework.TargetEnvtest
	case !slices.Contains(targets(), f.name):
		return exit.Usagef("--target %q: want envtest, kind or kubeconfig%s", f.name, suggest.DidYouMean(f.name, targets()))
	}
	conflict := func(flags, with string) error {
		return exit.Usagef("%s cannot be combined with %s", flags, with)
	}
	ofEnvtest := given("assets-dir", "observe-plugins", "plugin")
	switch f.name {
	case framework.TargetEnvtest:
		if ofCluster != "" {
			return conflict(ofCluster, "--target envtest, which starts its own API server")
		}
		if ofKind != "" {
			return exit.Usagef("%s: only for --target kind; add --target kind", ofKind)
		}
		if given("plugin") != "" && given("assets-dir") != "" {
			return conflict("--plugin", "--assets-dir, whose kube-apiserver is built already")
		}
		if flags := given("transport", "hook-image", "hook-address"); flags != "" {
			return conflict(flags, "--target envtest, whose API server runs on this machine and has no pods")
		}
	case framework.TargetKubeconfig:
		if flags := given("k8s-version", "assets-dir", "observe-plugins", "plugin"); flags != "" {
			return conflict(flags, "a kubeconfig, whose API server runs already")
		}
		if ofKind != "" {
			return conflict(ofKind, "a kubeconfig, whose cluster exists already")
		}
	case framework.TargetKind:
		if flags := strings.Join(slices.DeleteFunc([]string{ofCluster, ofEnvtest}, func(s string) bool { return s == "" }), " and "); flags != "" {
			return conflict(flags, "--target kind, which uses the API server of a kind cluster")
		}
		if err := f.kind.check(f.Assets.Version, given); err != nil {
			return err
		}
	}
	if err := f.transport.check(); err != nil {
		return err
	}
	if command.Flags().Changed("kubeconfig") && f.cluster.kubeconfig == "" {
		return exit.Usagef("--kubeconfig is empty; want the path of a kubeconfig file")
	}
	return nil
}

// Provider returns the provider of the target. If failed returns true at the end of a run
// on a kind cluster, the cluster's logs are written to the folder logs, unless it is empty.
func (f *Target) Provider(progress func(string), logs string, failed func() bool) target.Provider {
	switch f.name {
	case framework.TargetKubeconfig:
		from := f.cluster.Provider(progress)
		from.Transport, from.Disposable = f.transport.options(), f.disposable
		return from
	case framework.TargetKind:
		return providers.Kind{
			Cluster: kind.Options{NodeImage: f.kind.image(f.Assets.Version), Config: f.kind.file}, Use: f.kind.use,
			Transport: f.transport.options(), Logs: logs, Failed: failed, Progress: progress,
		}
	}
	return providers.NewEnvtest(providers.EnvtestOptions{Assets: f.Assets.Options(progress), ObservePlugins: f.ObservePlugins, Progress: progress})
}

// Name returns the target: envtest, kind or kubeconfig.
func (f *Target) Name() string { return f.name }

// Args returns the flags that choose the same target in another command line.
func (f *Target) Args(set *pflag.FlagSet) []string {
	args := Args(set, "target", "kubeconfig", "context", "k8s-version", "assets-dir", "kind-cluster", "node-image", "kind-config", "hook-image", "hook-source",
		"hook-address", "plugin", "disposable", "observe-plugins", "transport")
	if f.name == framework.TargetKubeconfig && !set.Changed("target") && f.cluster.kubeconfig == "" && f.cluster.context == "" {
		args = append([]string{"--target", f.name}, args...)
	}
	return args
}

// CreatesCluster reports whether each run creates a kind cluster.
func (f *Target) CreatesCluster() bool { return f.name == framework.TargetKind && f.kind.use == "" }
