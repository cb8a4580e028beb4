package cli

import (
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
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// assetsFlags say which control-plane binaries.
type assetsFlags struct{ version, dir string }

// flags adds --k8s-version and --assets-dir to a command.
func (f *assetsFlags) flags(command *cobra.Command) {
	f.versionFlag(command)
	f.dirFlag(command)
}

func (f *assetsFlags) versionFlag(command *cobra.Command) {
	command.Flags().StringVar(&f.version, "k8s-version", "", "Kubernetes version, like "+assets.DefaultVersion+" (the default)")
}

func (f *assetsFlags) dirFlag(command *cobra.Command) {
	command.Flags().StringVar(&f.dir, "assets-dir", "", "folder with kube-apiserver and etcd (default: KUBEBUILDER_ASSETS, or found, or built)")
	_ = command.MarkFlagDirname("assets-dir")
}

// options are those of package assets.
func (f *assetsFlags) options(progress func(string)) assets.Options {
	return assets.Options{Version: f.version, Dir: f.dir, Progress: progress}
}

// kindFlags say which cluster of kind.
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
	flags.BoolVar(&f.keep, "keep", false, "with --target kind: leave the cluster that was created")
	_ = command.MarkFlagFilename("kind-config", "yaml", "yml")
}

// transportFlags say how the API server reaches our webhooks.
type transportFlags struct{ mode, image, address string }

// flags adds --transport, --hook-image and --hook-address to a command.
func (f *transportFlags) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.mode, "transport", providers.TransportAuto, "how the API server reaches our webhooks: auto, url (at this machine) or service (through a pod in the cluster)")
	flags.StringVar(&f.image, "hook-image", "", "image of that pod, as \"admissiontest image\" makes it (default: built and loaded, on a kind cluster here)")
	flags.StringVar(&f.address, "hook-address", "", "HOST[:PORT] at which the API server reaches this machine (default: found out)")
	complete(command, "transport", providers.Transports()...)
}

// check refuses values and combinations that mean nothing.
func (f *transportFlags) check() error {
	if !slices.Contains(providers.Transports(), f.mode) {
		return usage("--transport %q: want %s%s", f.mode, strings.Join(providers.Transports(), ", "), suggest.DidYouMean(f.mode, providers.Transports()))
	}
	if f.address != "" {
		if f.mode == framework.TransportService {
			return usage("--hook-address: has no meaning with --transport service, whose address is the Service's; leave one out")
		}
		if _, _, err := providers.ParseHookAddress(f.address); err != nil {
			return usage("--hook-address %q: %w", f.address, err)
		}
	}
	if f.image != "" && f.mode == framework.TransportURL {
		return usage("--hook-image: has no meaning with --transport url, which runs no pod; leave one out")
	}
	return nil
}

// transport is that of package provider.
func (f *transportFlags) transport() providers.Transport {
	return providers.Transport{Mode: f.mode, HookImage: f.image, HookAddress: f.address}
}

// clusterFlags say which API server that runs already.
type clusterFlags struct{ kubeconfig, context string }

// flags adds --kubeconfig and --context to a command.
func (f *clusterFlags) flags(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of an API server that runs already (default: KUBECONFIG, or ~/.kube/config)")
	command.Flags().StringVar(&f.context, "context", "", "context in the kubeconfig (default: its current one)")
}

// provider is that of package provider.
func (f *clusterFlags) provider(progress func(string)) providers.Kubeconfig {
	return providers.Kubeconfig{Path: f.kubeconfig, Context: f.context, Progress: progress}
}

// targetFlags say where scenarios run.
type targetFlags struct {
	assetsFlags
	clusterFlags
	kindFlags
	transportFlags
	kind    string
	noBuild bool
}

// targets are the kinds that --target knows.
func targets() []string {
	return []string{framework.TargetChain, framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// usable are those that --target accepts.
func usable() []string {
	return []string{framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// flags adds all of them to a command.
func (f *targetFlags) flags(command *cobra.Command) {
	command.Flags().StringVar(&f.kind, "target", "", "where to run: envtest (the default) starts an API server here, kind creates a cluster, kubeconfig uses one that runs")
	complete(command, "target", usable()...)
	f.clusterFlags.flags(command)
	f.transportFlags.flags(command)
	f.kindFlags.flags(command)
	f.assetsFlags.flags(command)
	command.Flags().BoolVar(&f.noBuild, "no-build", false, "do not build control-plane binaries that are not found")
}

// given names those flags that a command line has.
func given(command *cobra.Command, names ...string) string {
	var found []string
	for _, name := range names {
		if command.Flags().Changed(name) {
			found = append(found, "--"+name)
		}
	}
	return strings.Join(found, " and ")
}

// check decides on the kind of target and refuses flags that do not fit it.
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
		return usage("--target %s: not built yet: use --target envtest, or --target kubeconfig with a server that runs", f.kind)
	}
	meaningless := func(flags, why string) error {
		return usage("%s: has no meaning %s; leave it out", flags, why)
	}
	ofEnvtest := given("assets-dir", "no-build")
	switch f.kind {
	case framework.TargetEnvtest:
		if ofCluster != "" {
			return usage("%s: has no meaning with --target envtest, which starts an API server of its own; leave one out", ofCluster)
		}
		if ofKind != "" {
			return meaningless(ofKind, "without --target kind")
		}
		if flags := given("transport", "hook-image", "hook-address"); flags != "" {
			return meaningless(flags, "with --target envtest, whose API server is on this machine and has no pods")
		}
	case framework.TargetKubeconfig:
		if flags := given("k8s-version", "assets-dir", "no-build"); flags != "" {
			return meaningless(flags, "with a kubeconfig, whose API server runs already")
		}
		if ofKind != "" {
			return meaningless(ofKind, "with a kubeconfig, whose cluster is there already")
		}
	case framework.TargetKind:
		if flags := strings.Join(slices.DeleteFunc([]string{ofCluster, ofEnvtest}, func(s string) bool { return s == "" }), " and "); flags != "" {
			return meaningless(flags, "with --target kind, whose API server is kind's")
		}
		if err := f.checkKind(given); err != nil {
			return err
		}
	}
	if err := f.transportFlags.check(); err != nil {
		return err
	}
	if command.Flags().Changed("kubeconfig") && f.kubeconfig == "" {
		return usage("--kubeconfig: is empty; want a file")
	}
	return nil
}

// checkKind refuses flags that do not fit one another with --target kind.
func (f *targetFlags) checkKind(given func(names ...string) string) error {
	if flags := given("node-image", "kind-config", "keep", "k8s-version"); given("kind-cluster") != "" && flags != "" {
		return usage("%s: has no meaning with --kind-cluster, which is there already and stays; leave it out", flags)
	}
	if given("kind-cluster") != "" && f.use == "" {
		return usage("--kind-cluster: is empty; want the name of a cluster, one of those that kind get clusters prints")
	}
	if f.nodeImage != "" && f.version != "" {
		return usage("--k8s-version and --node-image: both say which Kubernetes the nodes run; leave one out")
	}
	if f.version != "" && !regexp.MustCompile(`^v?1\.[0-9]+\.[0-9]+$`).MatchString(f.version) {
		return usage("--k8s-version %q: want a version like %s, of which there is an image kindest/node", f.version, assets.DefaultVersion)
	}
	if f.file != "" {
		if _, err := os.Stat(f.file); err != nil {
			return usage("--kind-config: %w", err)
		}
	}
	return nil
}

// image is the image of the nodes of a kind cluster. Empty is kind's choice.
func (f *targetFlags) image() string {
	if f.nodeImage == "" && f.version != "" {
		return "kindest/node:v" + strings.TrimPrefix(f.version, "v")
	}
	return f.nodeImage
}

// provider starts the target. The logs of a kind cluster go to a folder, unless
// it is empty, when failed says so.
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
	return providers.NewEnvtest(providers.EnvtestOptions{Assets: options, Progress: progress})
}

// again are the flags that choose the same target in another command line.
func (f *targetFlags) again() []string {
	var args []string
	for _, flag := range [][2]string{
		{"--kubeconfig", f.kubeconfig}, {"--context", f.context},
		{"--k8s-version", f.version}, {"--assets-dir", f.dir},
		{"--kind-cluster", f.use}, {"--node-image", f.nodeImage}, {"--kind-config", f.file},
		{"--hook-image", f.transportFlags.image}, {"--hook-address", f.address},
	} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	if f.mode != "" && f.mode != providers.TransportAuto {
		args = append(args, "--transport", f.mode)
	}
	if f.kind == framework.TargetKind || f.kind == framework.TargetKubeconfig && f.kubeconfig == "" && f.context == "" {
		args = append([]string{"--target", f.kind}, args...)
	}
	return args
}

// commandLine writes arguments as a shell reads them.
func commandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if arg == "" || strings.ContainsFunc(arg, special) {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// special reports whether a shell may take a character for something else.
func special(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@+%", r)
	return !plain
}
