package flags

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// kindFlags choose a kind cluster.
type kindFlags struct {
	use, nodeImage, file string
}

// add adds --kind-cluster, --node-image and --kind-config to a command.
func (f *kindFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.use, "kind-cluster", "", "with --target kind: use this cluster, and do not delete it (default: create one)")
	flags.StringVar(&f.nodeImage, "node-image", "", "with --target kind: image of the nodes (default: kind's, or kindest/node of --k8s-version)")
	flags.StringVar(&f.file, "kind-config", "", "with --target kind: file with a kind configuration")
	_ = command.MarkFlagFilename("kind-config", "yaml", "yml")
}

// check returns an error for flags that do not fit together. Version is the value of --k8s-version.
func (f *kindFlags) check(version string, given func(names ...string) string) error {
	if flags := given("node-image", "kind-config", "k8s-version"); given("kind-cluster") != "" && flags != "" {
		return exit.Usagef("%s cannot be combined with --kind-cluster, which uses an existing cluster and does not delete it", flags)
	}
	if given("kind-cluster") != "" && f.use == "" {
		return exit.Usagef("--kind-cluster is empty; want the name of a cluster: see kind get clusters")
	}
	if f.nodeImage != "" && version != "" {
		return exit.Usagef("--k8s-version and --node-image cannot be combined: both choose the Kubernetes version of the nodes")
	}
	if version != "" && !regexp.MustCompile(`^v?1\.[0-9]+\.[0-9]+$`).MatchString(version) {
		return exit.Usagef("--k8s-version %q: want a version like %s that has an image kindest/node", version, binaries.DefaultVersion)
	}
	if f.file != "" {
		if _, err := userfile.Read(f.file); err != nil {
			return exit.Usagef("--kind-config: %w", err)
		}
	}
	return nil
}

// image returns the image of the nodes of a kind cluster. Empty means kind's default.
// Version is the value of --k8s-version.
func (f *kindFlags) image(version string) string {
	if f.nodeImage == "" && version != "" {
		return "kindest/node:v" + strings.TrimPrefix(version, "v")
	}
	return f.nodeImage
}
