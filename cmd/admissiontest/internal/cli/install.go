package cli

import (
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// installFlag is what is installed for all scenarios.
type installFlag struct{ paths []string }

// flag adds --install to a command.
func (f *installFlag) flag(command *cobra.Command) {
	command.Flags().StringArrayVar(&f.paths, "install", nil, "FILE|DIR with manifests, such as the output of kustomize build: installs their webhook configurations, policies and CustomResourceDefinitions for all scenarios, and removes them at the end (repeatable)")
	_ = command.MarkFlagFilename("install", "yaml", "yml", "json")
}

// project reads the manifests, and prints what of them is not installed.
func (f *installFlag) project(a *app) (*shipped.Project, error) {
	if len(f.paths) == 0 {
		return nil, nil
	}
	project, err := shipped.Load(f.paths...)
	if err != nil {
		return nil, err
	}
	for _, line := range project.LeftOut() {
		a.note("--install: " + line)
	}
	return project, nil
}

// args returns the same flags for another command line.
func (f *installFlag) args() []string {
	var args []string
	for _, path := range f.paths {
		args = append(args, "--install", path)
	}
	return args
}
