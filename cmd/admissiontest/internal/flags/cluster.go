package flags

import (
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/providers"
)

// Cluster are the flags that choose an existing API server.
type Cluster struct{ kubeconfig, context string }

// Add adds --kubeconfig and --context to a command.
func (f *Cluster) Add(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of an existing cluster (default: KUBECONFIG, or ~/.kube/config, or the ServiceAccount of this pod)")
	command.Flags().StringVar(&f.context, "context", "", "context in the kubeconfig (default: its current context)")
}

// Provider returns the provider for the cluster.
func (f *Cluster) Provider(progress func(string)) providers.Kubeconfig {
	return providers.Kubeconfig{Path: f.kubeconfig, Context: f.context, Progress: progress}
}
