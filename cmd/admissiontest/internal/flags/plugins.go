package flags

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// Plugins has the values of --plugin, which can be repeated. It implements pflag.Value.
type Plugins []binaries.Plugin

// Add adds --plugin to a command.
func (f *Plugins) Add(command *cobra.Command) {
	command.Flags().Var(f, "plugin", "compile the admission plugins of a Go package into kube-apiserver: PACKAGE is a folder (./pkg/owner) or an import path; before, after and last set their place in the order of plugins (default: where Kubernetes puts new plugins); off disables them by default (repeatable)")
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
	one, err := binaries.ParsePlugin(text)
	if err == nil {
		*f = append(*f, one)
	}
	return err
}
