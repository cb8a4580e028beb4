package flags

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// Plugins is the value of --plugin, which can be repeated.
type Plugins []assets.Plugin

// Add adds --plugin to a command.
func (f *Plugins) Add(command *cobra.Command) {
	command.Flags().Var(f, "plugin", "compile the admission plugins of a Go package into kube-apiserver; repeat it for several: a folder (./pkg/owner) or an import path, and where they are in the order of plugins (default: where Kubernetes puts new ones), and off to turn them off by default")
	_ = command.MarkFlagDirname("plugin")
}

// Type returns the form of a value, for the help.
func (*Plugins) Type() string { return "PACKAGE[,before=NAME|,after=NAME|,last][,off]" }

// String returns the values.
func (f *Plugins) String() string {
	var all []string
	for _, one := range *f {
		all = append(all, one.String())
	}
	return strings.Join(all, " ")
}

// Set adds a value.
func (f *Plugins) Set(text string) error {
	one, err := assets.ParsePlugin(text)
	if err == nil {
		*f = append(*f, one)
	}
	return err
}
