package flags

import (
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// Assets are the flags that choose control-plane binaries.
type Assets struct {
	// Version is the version of Kubernetes. Empty means the default.
	Version string
	// Dir is a folder with the binaries. Empty means that admissiontest finds or builds the
	// binaries.
	Dir string
	// Plugins are compiled into kube-apiserver. Add does not add the flag --plugin: Plugins.Add
	// does.
	Plugins Plugins
}

// Add adds --k8s-version and --assets-dir to a command.
func (f *Assets) Add(command *cobra.Command) {
	f.AddVersion(command)
	f.AddDir(command)
}

// AddDir adds --assets-dir to a command.
func (f *Assets) AddDir(command *cobra.Command) {
	command.Flags().StringVar(&f.Dir, "assets-dir", "", "folder with kube-apiserver and etcd (default: KUBEBUILDER_ASSETS, else binaries found on this machine, else built)")
	_ = command.MarkFlagDirname("assets-dir")
}

// AddVersion adds --k8s-version to a command.
func (f *Assets) AddVersion(command *cobra.Command) {
	command.Flags().StringVar(&f.Version, "k8s-version", "", "Kubernetes version, or a minor version such as 1.36 (default: "+binaries.DefaultVersion+")")
}

// Options returns the options of package binaries.
func (f *Assets) Options(progress func(string)) binaries.Options {
	return binaries.Options{Version: f.Version, Dir: f.Dir, Plugins: f.Plugins, Progress: progress}
}
