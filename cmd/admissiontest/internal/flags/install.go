package flags

import (
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// Install is the flag --install: what is installed for all scenarios.
type Install struct {
	// Paths are files and folders with manifests.
	Paths []string
}

// Add adds --install to a command.
func (f *Install) Add(command *cobra.Command) {
	command.Flags().StringArrayVar(&f.Paths, "install", nil, "install the webhook configurations, policies and CustomResourceDefinitions of FILE|DIR, such as the output of kustomize build, for all scenarios, and remove them at the end (repeatable)")
	_ = command.MarkFlagFilename("install", "yaml", "yml", "json")
}

// Project reads the manifests. It calls note with lines about manifests that are not installed.
// Without --install, the Project is nil.
func (f *Install) Project(note func(line string)) (*shipped.Project, error) {
	if len(f.Paths) == 0 {
		return nil, nil
	}
	project, err := shipped.Load(f.Paths...)
	if err != nil {
		return nil, err
	}
	for _, line := range project.LeftOut() {
		note("--install: " + line)
	}
	return project, nil
}
