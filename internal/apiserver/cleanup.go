package apiserver

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// CleanupOptions configure Cleanup. The zero value removes what every run left that is
// not alive.
type CleanupOptions struct {
	// Run is the ID of the only run to remove. Empty means all.
	Run string
	// DryRun finds objects and removes nothing.
	DryRun bool
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Cleanup removes everything that runs left on a cluster, and waits until it is gone. It
// returns the objects that it found: RESOURCE.GROUP/NAME, or
// RESOURCE.GROUP/NAMESPACE/NAME. Runs that are alive are passed over; to name one is an
// error. The error also names what is left.
func Cleanup(ctx context.Context, config *rest.Config, options CleanupOptions) ([]string, error) {
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Version(ctx); err != nil {
		return nil, err
	}
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	return (&remover{client: c, progress: options.Progress}).cleanup(ctx, options)
}

// KindCheck returns a function that returns an error with a suggestion for a kind that seems to be misspelt:
// neither Kubernetes nor one of the CustomResourceDefinitions has it, but its group has one with nearly the same
// name. No API server is asked.
func KindCheck(definitions []map[string]any) func(schema.GroupVersionKind) error {
	known := client.BuiltIn()
	for _, definition := range definitions {
		known.AddCRD(definition)
	}
	return func(kind schema.GroupVersionKind) error {
		if _, err := known.Of(kind); !errors.Is(err, framework.ErrNotServed) {
			return err
		}
		return nil
	}
}
