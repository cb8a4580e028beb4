package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/engine/provider"
	"github.com/admissiontest/admissiontest/framework/suggest"
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

// clusterFlags say which API server that runs already.
type clusterFlags struct{ kubeconfig, context string }

// flags adds --kubeconfig and --context to a command.
func (f *clusterFlags) flags(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of an API server that runs already (default: KUBECONFIG, or ~/.kube/config)")
	command.Flags().StringVar(&f.context, "context", "", "context in the kubeconfig (default: its current one)")
}

// provider is that of package provider.
func (f *clusterFlags) provider(progress func(string)) provider.Kubeconfig {
	return provider.Kubeconfig{Path: f.kubeconfig, Context: f.context, Progress: progress}
}

// targetFlags say where scenarios run.
type targetFlags struct {
	assetsFlags
	clusterFlags
	kind    string
	noBuild bool
}

// targets are the kinds that --target knows.
func targets() []string {
	return []string{framework.TargetChain, framework.TargetEnvtest, framework.TargetKind, framework.TargetKubeconfig}
}

// flags adds all of them to a command.
func (f *targetFlags) flags(command *cobra.Command) {
	command.Flags().StringVar(&f.kind, "target", "", "where to run: envtest (the default) starts an API server here, kubeconfig uses one that runs")
	complete(command, "target", framework.TargetEnvtest, framework.TargetKubeconfig)
	f.clusterFlags.flags(command)
	f.assetsFlags.flags(command)
	command.Flags().BoolVar(&f.noBuild, "no-build", false, "do not build control-plane binaries that are not found")
}

// check decides on the kind of target and refuses flags that do not fit it.
func (f *targetFlags) check(command *cobra.Command) error {
	given := func(names ...string) string {
		var found []string
		for _, name := range names {
			if command.Flags().Changed(name) {
				found = append(found, "--"+name)
			}
		}
		return strings.Join(found, " and ")
	}
	ofCluster := given("kubeconfig", "context")
	switch {
	case f.kind == "" && ofCluster != "":
		f.kind = framework.TargetKubeconfig
	case f.kind == "":
		f.kind = framework.TargetEnvtest
	case !slices.Contains(targets(), f.kind):
		return usage("--target %q: want envtest or kubeconfig%s", f.kind, suggest.DidYouMean(f.kind, targets()))
	case f.kind == framework.TargetChain, f.kind == framework.TargetKind:
		return usage("--target %s: not built yet: use --target envtest, or --target kubeconfig with a server that runs", f.kind)
	case f.kind == framework.TargetEnvtest && ofCluster != "":
		return usage("%s: has no meaning with --target envtest, which starts an API server of its own; leave one out", ofCluster)
	}
	ofEnvtest := given("k8s-version", "assets-dir", "no-build")
	if f.kind == framework.TargetKubeconfig && ofEnvtest != "" {
		return usage("%s: has no meaning with a kubeconfig, whose API server runs already; leave it out", ofEnvtest)
	}
	if command.Flags().Changed("kubeconfig") && f.kubeconfig == "" {
		return usage("--kubeconfig: is empty; want a file")
	}
	return nil
}

// provider starts the target.
func (f *targetFlags) provider(progress func(string)) engine.Provider {
	if f.kind == framework.TargetKubeconfig {
		return f.clusterFlags.provider(progress)
	}
	options := f.options(progress)
	options.NoBuild = f.noBuild
	return provider.NewEnvtest(provider.EnvtestOptions{Assets: options, Progress: progress})
}

// again are the flags that choose the same target in another command line.
func (f *targetFlags) again() []string {
	var args []string
	for _, flag := range [][2]string{
		{"--kubeconfig", f.kubeconfig}, {"--context", f.context},
		{"--k8s-version", f.version}, {"--assets-dir", f.dir},
	} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	if f.kind == framework.TargetKubeconfig && len(args) == 0 {
		args = append(args, "--target", f.kind)
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
