package cli

import (
	"context"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/served"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// assetsFlags choose control-plane binaries.
type assetsFlags struct {
	version, dir string
	plugins      pluginFlag
}

// flags adds --k8s-version and --assets-dir to a command.
func (f *assetsFlags) flags(command *cobra.Command) {
	f.versionFlag(command)
	f.dirFlag(command)
}

func (f *assetsFlags) versionFlag(command *cobra.Command) {
	command.Flags().StringVar(&f.version, "k8s-version", "", "Kubernetes version (default: "+assets.DefaultVersion+")")
}

func (f *assetsFlags) dirFlag(command *cobra.Command) {
	command.Flags().StringVar(&f.dir, "assets-dir", "", "folder with kube-apiserver and etcd (default: KUBEBUILDER_ASSETS, or binaries found on this machine, or built)")
	_ = command.MarkFlagDirname("assets-dir")
}

// options returns the options of package assets.
func (f *assetsFlags) options(progress func(string)) assets.Options {
	return assets.Options{Version: f.version, Dir: f.dir, Plugins: f.plugins, Progress: progress}
}

// kindFlags choose a kind cluster.
type kindFlags struct {
	keep                 bool
	use, nodeImage, file string
}

// flags adds --kind-cluster, --node-image, --kind-config and --keep to a command.
func (f *kindFlags) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.use, "kind-cluster", "", "with --target kind: use this cluster, and do not delete it (default: create one)")
	flags.StringVar(&f.nodeImage, "node-image", "", "with --target kind: image of the nodes (default: kind's, or kindest/node of --k8s-version)")
	flags.StringVar(&f.file, "kind-config", "", "with --target kind: file with a kind configuration")
	flags.BoolVar(&f.keep, "keep", false, "with --target kind: do not delete the cluster that the run creates")
	_ = command.MarkFlagFilename("kind-config", "yaml", "yml")
}

// transportFlags choose how the API server reaches the Hooks.
type transportFlags struct {
	mode, image, address string
	sources              []string
	parsed               []netip.Prefix // the sources
}

// flags adds --transport, --hook-image and --hook-address to a command.
func (f *transportFlags) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.mode, "transport", providers.TransportAuto, "how the API server reaches the Hooks: url (at this machine), service (through a pod in the cluster) or auto (url if it works, otherwise service)")
	flags.StringVar(&f.image, "hook-image", "", "image of the pod of --transport service, made by \"admissiontest image\" (default: on a kind cluster of this machine, built and loaded)")
	flags.StringSliceVar(&f.sources, "hook-source", nil, "CIDR from which the API server connects to pods: a NetworkPolicy lets nothing else connect to the pod of --transport service (repeatable)")
	flags.StringVar(&f.address, "hook-address", "", "HOST[:PORT] at which the API server reaches this machine (default: tries the addresses of this machine)")
	complete(command, "transport", providers.Transports()...)
}

// check returns an error for a bad value or combination.
func (f *transportFlags) check() error {
	if !slices.Contains(providers.Transports(), f.mode) {
		return usage("--transport %q: want %s%s", f.mode, strings.Join(providers.Transports(), ", "), suggest.DidYouMean(f.mode, providers.Transports()))
	}
	if f.address != "" {
		if f.mode == framework.TransportService {
			return usage("--hook-address cannot be combined with --transport service, which uses the address of a Service")
		}
		if _, _, err := providers.ParseHookAddress(f.address); err != nil {
			return usage("--hook-address %q: %w", f.address, err)
		}
	}
	if f.image != "" && f.mode == framework.TransportURL {
		return usage("--hook-image cannot be combined with --transport url, which runs no pod")
	}
	if len(f.sources) > 0 && f.mode == framework.TransportURL {
		return usage("--hook-source cannot be combined with --transport url, which runs no pod")
	}
	for _, source := range f.sources {
		prefix, err := netip.ParsePrefix(source)
		if err != nil {
			return usage("--hook-source %q: want addresses in CIDR notation, 10.0.0.0/24 or 10.0.0.1/32", source)
		}
		f.parsed = append(f.parsed, prefix.Masked())
	}
	return nil
}

// transport returns the transport for package providers.
func (f *transportFlags) transport() providers.Transport {
	return providers.Transport{Mode: f.mode, HookImage: f.image, HookSources: f.parsed, HookAddress: f.address}
}

// clusterFlags choose an existing API server.
type clusterFlags struct{ kubeconfig, context string }

// flags adds --kubeconfig and --context to a command.
func (f *clusterFlags) flags(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of an existing cluster (default: KUBECONFIG, or ~/.kube/config)")
	command.Flags().StringVar(&f.context, "context", "", "context in the kubeconfig (default: its current context)")
}

// provider returns the provider for the cluster.
func (f *clusterFlags) provider(progress func(string)) providers.Kubeconfig {
	return providers.Kubeconfig{Path: f.kubeconfig, Context: f.context, Progress: progress}
}

// targetFlags choose where scenarios run.
type targetFlags struct {
	assetsFlags
	clusterFlags
	kindFlags
	transportFlags
	kind    string
	noBuild bool
	// fresh is only a flag of run.
	fresh bool
	// served is as in providers.EnvtestOptions. Nil means findServed, unless fresh is set.
	served func(context.Context, assets.Assets) (*served.Session, error)
	// observePlugins is only a flag of run, as plugins is.
	observePlugins bool
}

// targets are all kinds of target, including those that cannot run scenarios yet.
func targets() []string {
	return []string{framework.TargetChain, framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// usable are the kinds of target that --target accepts.
func usable() []string {
	return []string{framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// flags adds all of them to a command.
func (f *targetFlags) flags(command *cobra.Command) {
	command.Flags().StringVar(&f.kind, "target", "", "where to run: envtest starts an API server on this machine, kind creates a cluster, kubeconfig uses an existing cluster (default: envtest, or kubeconfig if --kubeconfig or --context is given)")
	complete(command, "target", usable()...)
	f.clusterFlags.flags(command)
	f.transportFlags.flags(command)
	f.kindFlags.flags(command)
	f.assetsFlags.flags(command)
	command.Flags().BoolVar(&f.noBuild, "no-build", false, "if no control-plane binaries are found, fail instead of building them")
}

// pluginFlags adds --plugin and --observe-plugins to a command.
func (f *targetFlags) pluginFlags(command *cobra.Command) {
	f.plugins.flag(command)
	command.Flags().BoolVar(&f.observePlugins, "observe-plugins", false, "with --target envtest: record the calls of all admission plugins, for timelines (default: on the servers of scenarios that expect such calls)")
}

// given returns which of the named flags the command line sets, "--a and --b". It is
// empty if the command line sets none.
func given(command *cobra.Command, names ...string) string {
	var found []string
	for _, name := range names {
		if command.Flags().Changed(name) {
			found = append(found, "--"+name)
		}
	}
	return strings.Join(found, " and ")
}

// check sets the kind of target if --target is not given, and returns an error for flags
// that do not fit it.
func (f *targetFlags) check(command *cobra.Command) error {
	given := func(names ...string) string { return given(command, names...) }
	ofCluster, ofKind := given("kubeconfig", "context"), given("kind-cluster", "node-image", "kind-config", "keep")
	switch {
	case f.kind == "" && ofCluster != "":
		f.kind = framework.TargetKubeconfig
	case f.kind == "":
		f.kind = framework.TargetEnvtest
	case !slices.Contains(targets(), f.kind):
		return usage("--target %q: want envtest, kind or kubeconfig%s", f.kind, suggest.DidYouMean(f.kind, targets()))
	case f.kind == framework.TargetChain:
		return usage("--target %s is not implemented yet; use --target envtest, kind or kubeconfig", f.kind)
	}
	conflict := func(flags, with string) error {
		return usage("%s cannot be combined with %s", flags, with)
	}
	ofEnvtest := given("assets-dir", "no-build", "observe-plugins", "plugin", "fresh")
	switch f.kind {
	case framework.TargetEnvtest:
		if ofCluster != "" {
			return conflict(ofCluster, "--target envtest, which starts its own API server")
		}
		if ofKind != "" {
			return usage("%s: only --target kind has it; add --target kind", ofKind)
		}
		if given("plugin") != "" && given("assets-dir") != "" {
			return conflict("--plugin", "--assets-dir, whose kube-apiserver is built already")
		}
		if flags := given("transport", "hook-image", "hook-address"); flags != "" {
			return conflict(flags, "--target envtest, whose API server runs on this machine and has no pods")
		}
	case framework.TargetKubeconfig:
		if flags := given("k8s-version", "assets-dir", "no-build", "observe-plugins", "plugin", "fresh"); flags != "" {
			return conflict(flags, "a kubeconfig, whose API server runs already")
		}
		if ofKind != "" {
			return conflict(ofKind, "a kubeconfig, whose cluster exists already")
		}
	case framework.TargetKind:
		if flags := strings.Join(slices.DeleteFunc([]string{ofCluster, ofEnvtest}, func(s string) bool { return s == "" }), " and "); flags != "" {
			return conflict(flags, "--target kind, which uses the API server of a kind cluster")
		}
		if err := f.checkKind(given); err != nil {
			return err
		}
	}
	if err := f.transportFlags.check(); err != nil {
		return err
	}
	if command.Flags().Changed("kubeconfig") && f.kubeconfig == "" {
		return usage("--kubeconfig is empty; want a file")
	}
	return nil
}

// checkKind returns an error for flags of --target kind that do not fit together.
func (f *targetFlags) checkKind(given func(names ...string) string) error {
	if flags := given("node-image", "kind-config", "keep", "k8s-version"); given("kind-cluster") != "" && flags != "" {
		return usage("%s cannot be combined with --kind-cluster, which uses an existing cluster and does not delete it", flags)
	}
	if given("kind-cluster") != "" && f.use == "" {
		return usage("--kind-cluster is empty; want the name of a cluster: see kind get clusters")
	}
	if f.nodeImage != "" && f.version != "" {
		return usage("--k8s-version and --node-image cannot be combined: both choose the Kubernetes version of the nodes")
	}
	if f.version != "" && !regexp.MustCompile(`^v?1\.[0-9]+\.[0-9]+$`).MatchString(f.version) {
		return usage("--k8s-version %q: want a version like %s that has an image kindest/node", f.version, assets.DefaultVersion)
	}
	if f.file != "" {
		if _, err := os.Stat(f.file); err != nil {
			return usage("--kind-config: %w", err)
		}
	}
	return nil
}

// image returns the image of the nodes of a kind cluster. Empty means kind's default.
func (f *targetFlags) image() string {
	if f.nodeImage == "" && f.version != "" {
		return "kindest/node:v" + strings.TrimPrefix(f.version, "v")
	}
	return f.nodeImage
}

// provider returns the provider of the target. If failed returns true at the end of a run
// on a kind cluster, the cluster's logs are written to the folder logs, unless it is empty.
func (f *targetFlags) provider(progress func(string), logs string, failed func() bool) engine.Provider {
	switch f.kind {
	case framework.TargetKubeconfig:
		from := f.clusterFlags.provider(progress)
		from.Transport = f.transport()
		return from
	case framework.TargetKind:
		return providers.Kind{
			Cluster: kind.Options{NodeImage: f.image(), Config: f.file}, Use: f.use, Keep: f.keep,
			Transport: f.transport(), Logs: logs, Failed: failed, Progress: progress,
		}
	}
	options := f.options(progress)
	options.NoBuild = f.noBuild
	own := providers.EnvtestOptions{Assets: options, ObservePlugins: f.observePlugins, Progress: progress}
	switch {
	case f.served != nil:
		own.Served = f.served
	case !f.fresh:
		own.Served = findServed
	}
	return providers.NewEnvtest(own)
}

// args returns the flags that choose the same target in another command line.
func (f *targetFlags) args() []string {
	var args []string
	for _, flag := range [][2]string{
		{"--kubeconfig", f.kubeconfig}, {"--context", f.context},
		{"--k8s-version", f.version}, {"--assets-dir", f.dir},
		{"--kind-cluster", f.use}, {"--node-image", f.nodeImage}, {"--kind-config", f.file},
		{"--hook-image", f.transportFlags.image}, {"--hook-source", strings.Join(f.sources, ",")}, {"--hook-address", f.address},
	} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	for _, one := range f.plugins {
		args = append(args, "--plugin", one.String())
	}
	if f.observePlugins {
		args = append(args, "--observe-plugins")
	}
	if f.mode != "" && f.mode != providers.TransportAuto {
		args = append(args, "--transport", f.mode)
	}
	if f.kind == framework.TargetKind || f.kind == framework.TargetKubeconfig && f.kubeconfig == "" && f.context == "" {
		args = append([]string{"--target", f.kind}, args...)
	}
	return args
}
