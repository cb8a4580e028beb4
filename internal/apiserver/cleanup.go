package apiserver

import (
	"context"

	"k8s.io/client-go/rest"

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
