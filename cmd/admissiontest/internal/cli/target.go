package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/target"
)

// assetFlags choose control-plane binaries.
type assetFlags struct {
	// Options has the version and the places, without plugins.
	binaries.Options
	// plugins are compiled into kube-apiserver.
	plugins pluginFlag
}

// add adds the flags to a command that uses the binaries.
func (f *assetFlags) add(command *cobra.Command) {
	f.addVersion(command)
	f.addDir(command)
	set := command.Flags()
	set.StringVar(&f.IndexURL, "assets-index", "", "URL of the index of envtest releases to download from, such as that of a mirror (default: ADMISSIONTEST_ASSETS_INDEX, else that of kubernetes-sigs/controller-tools)")
	set.BoolVar(&f.NoDownload, "no-download", false, "do not download kube-apiserver and etcd: build them from Go modules if this machine has none")
	set.BoolVar(&f.NoBuild, "no-build", false, "do not build kube-apiserver and etcd")
}

// addDir adds --assets-dir to a command.
func (f *assetFlags) addDir(command *cobra.Command) {
	command.Flags().StringVar(&f.Dir, "assets-dir", "", "folder with kube-apiserver and etcd (default: KUBEBUILDER_ASSETS, else found on this machine, else downloaded, else built)")
}

// addVersion adds --k8s-version to a command.
func (f *assetFlags) addVersion(command *cobra.Command) {
	command.Flags().StringVar(&f.Version, "k8s-version", "", "Kubernetes version, or a minor version such as 1.36, which means its newest patch (default: the minor version of "+binaries.DefaultVersion+")")
}

// options returns the options of package binaries.
func (f *assetFlags) options(progress func(string)) binaries.Options {
	o := f.Options
	o.Plugins, o.Progress = f.plugins, progress
	return o
}

// pluginFlag has the values of --plugin, which can be repeated. It implements pflag.Value.
type pluginFlag []binaries.Plugin

// add adds --plugin to a command.
func (f *pluginFlag) add(command *cobra.Command) {
	command.Flags().Var(f, "plugin", "compile the admission plugins of a Go package into kube-apiserver: PACKAGE is a folder (./pkg/owner) or an import path; last calls them after all others (default: where Kubernetes puts new plugins); off disables them by default (repeatable)")
}

// Type returns the form of a value, for the help.
func (*pluginFlag) Type() string { return "PACKAGE[,last][,off]" }

// String returns the values.
func (f *pluginFlag) String() string {
	var all []string
	for _, one := range *f {
		all = append(all, one.String())
	}
	return strings.Join(all, " ")
}

// Set adds a value.
func (f *pluginFlag) Set(text string) error {
	one, err := binaries.ParsePlugin(text)
	if err == nil {
		*f = append(*f, one)
	}
	return err
}

// builtAlready is why --plugin cannot be combined with --assets-dir.
const builtAlready = "--assets-dir, whose kube-apiserver is built already"

// clusterFlags choose an existing API server.
type clusterFlags struct{ kubeconfig, context string }

// add adds --kubeconfig and --context to a command.
func (f *clusterFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of an existing cluster (default: KUBECONFIG, or ~/.kube/config, or the ServiceAccount of this pod)")
	command.Flags().StringVar(&f.context, "context", "", "context in the kubeconfig (default: its current context)")
}

// provider returns the provider for the cluster.
func (f *clusterFlags) provider(progress func(string)) providers.Kubeconfig {
	return providers.Kubeconfig{Path: f.kubeconfig, Context: f.context, Progress: progress}
}

// targetFlags choose where scenarios run.
type targetFlags struct {
	assets assetFlags
	// name is an element of targets() once check has been called.
	name      string
	cluster   clusterFlags
	transport providers.Transport
	// transportText is the value of --transport, before check.
	transportText string
	// report is where a run writes its report: a ConfigMap is in the cluster of the target.
	report reportFlag
	// disposable is providers.Kubeconfig.Disposable.
	disposable bool
	// observePlugins is true if the calls of all admission plugins are recorded.
	observePlugins bool
}

// targets are the kinds of target.
func targets() []string {
	return []string{framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// add adds the flags to a command.
func (f *targetFlags) add(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.name, "target", "", "where to run: envtest starts an API server on this machine, kind creates a cluster, kubeconfig uses an existing cluster (default: envtest, or kubeconfig if --kubeconfig or --context is given)")
	f.cluster.add(command)
	set.BoolVar(&f.disposable, "disposable", false, "with --kubeconfig: the API server is only for tests and has no other clients, so scenarios can run whose configurations decide about all requests")
	set.StringVar(&f.transportText, "transport", providers.TransportAuto, "how the API server reaches the Hooks: url (on this machine), service (through a pod in the cluster) or auto (url if it works, otherwise service); service=IMAGE is a pod with an image that \"admissiontest image\" made (default on a kind cluster of this machine: built and loaded into the nodes)")
	f.assets.add(command)
	f.assets.plugins.add(command)
	set.BoolVar(&f.observePlugins, "observe-plugins", false, "with --target envtest: record the calls of all admission plugins and show them in timelines (default: only with --plugin, and on the servers of scenarios that expect such calls)")
}

// check sets the target if --target is not given, and returns an error for flags that cannot be
// used with the target.
func (f *targetFlags) check(command *cobra.Command) error {
	given := func(names ...string) string { return givenFlags(command, names...) }
	ofCluster := given("kubeconfig", "context", "disposable")
	if ofCluster == "" && f.report.configMap != "" {
		ofCluster = "--report " + configMapPrefix + f.report.configMap
	}
	ofBinaries := given("assets-dir", "assets-index", "no-download", "no-build", "plugin", "observe-plugins")
	switch {
	case f.name == "" && ofCluster != "":
		f.name = framework.TargetKubeconfig
	case f.name == "":
		f.name = framework.TargetEnvtest
	case !slices.Contains(targets(), f.name):
		return usagef("--target %q: want envtest, kind or kubeconfig%s", f.name, suggest.DidYouMean(f.name, targets()))
	}
	var flags, with string
	switch f.name {
	case framework.TargetEnvtest:
		if flags, with = ofCluster, "--target envtest, which starts its own API server"; flags == "" {
			flags, with = given("transport"), "--target envtest, whose API server runs on this machine and has no pods"
		}
		if flags == "" && f.assets.Dir != "" {
			flags, with = given("plugin"), builtAlready
		}
	case framework.TargetKubeconfig:
		flags, with = cmp.Or(given("k8s-version"), ofBinaries), "a kubeconfig, whose API server runs already"
	case framework.TargetKind:
		flags, with = cmp.Or(ofCluster, ofBinaries), "--target kind, which uses the API server of a kind cluster"
	}
	switch {
	case flags != "":
		return usagef("%s cannot be combined with %s", flags, with)
	case f.name == framework.TargetKind && f.assets.Version != "" && strings.Count(f.assets.Version, ".") != 2:
		return usagef("--k8s-version %q: want a version like %s that has an image kindest/node", f.assets.Version, binaries.DefaultVersion)
	case command.Flags().Changed("kubeconfig") && f.cluster.kubeconfig == "":
		return usagef("--kubeconfig is empty; want the path of a kubeconfig file")
	}
	return f.checkTransport()
}

// checkTransport sets the transport, and returns an error for a bad value of --transport.
func (f *targetFlags) checkTransport() error {
	mode, image, hasImage := strings.Cut(f.transportText, "=")
	t := providers.Transport{Mode: mode, HookImage: image}
	f.transport = t
	switch {
	case !slices.Contains(providers.Transports(), t.Mode):
		return usagef("--transport %q: want %s%s", t.Mode, strings.Join(providers.Transports(), ", "), suggest.DidYouMean(t.Mode, providers.Transports()))
	case hasImage && (image == "" || mode == framework.TransportURL):
		return usagef("--transport %q: want service=IMAGE; url runs no pod", f.transportText)
	}
	return nil
}

// provider returns the provider of the target.
func (f *targetFlags) provider(progress func(string)) target.Provider {
	switch f.name {
	case framework.TargetKubeconfig:
		from := f.cluster.provider(progress)
		from.Transport, from.Disposable = f.transport, f.disposable
		return from
	case framework.TargetKind:
		var options kind.Options
		if f.assets.Version != "" {
			options.NodeImage = "kindest/node:v" + strings.TrimPrefix(f.assets.Version, "v")
		}
		return providers.Kind{Cluster: options, Transport: f.transport, Progress: progress}
	}
	return providers.NewEnvtest(providers.EnvtestOptions{Assets: f.assets.options(progress), ObservePlugins: f.observePlugins, Progress: progress})
}

// args returns the flags that choose the same target in another command line.
func (f *targetFlags) args(set *pflag.FlagSet) []string {
	args := argsOf(set, "target", "kubeconfig", "context", "k8s-version", "assets-dir", "assets-index", "no-download", "no-build", "plugin", "observe-plugins", "disposable", "transport")
	if f.name == framework.TargetKubeconfig && !set.Changed("target") && f.cluster.kubeconfig == "" && f.cluster.context == "" {
		args = append([]string{"--target", f.name}, args...)
	}
	return args
}
