package apiserver

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/rights"
)

// CleanupOptions configure Cleanup. The zero value removes what every run left that is
// not alive.
type CleanupOptions struct {
	// Run is the ID of the only run to remove. Empty means all.
	Run string
	// DryRun finds objects and removes nothing.
	DryRun bool
	// Progress receives a line for each longer action, and for each object with the label
	// of a run that does not belong to it and is not removed. Nil discards them.
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

// ErrRightsMissing marks rights that are missing for a run.
var ErrRightsMissing = rights.ErrMissing

// Need is what one scenario is going to send.
type Need = rights.Need

// Right is one action that a user must be allowed to do.
type Right = client.Right

// Rights returns the rights that CheckRights checks, and who needs each, on an API server with the kinds of Kubernetes
// only. A right that every run needs has an empty list.
func Rights(needs []Need) map[Right][]string { return rights.Wanted(client.BuiltIn(), needs) }

// MissingRights returns which of some rights the user of a configuration does not have. If the API server does not
// answer reviews, no right counts as missing.
func MissingRights(ctx context.Context, config *rest.Config, needed []Right) ([]Right, error) {
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Missing(ctx, needed)
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

// CheckRights finds out whether the user of a configuration has the rights that a run
// needs: for the requests of its scenarios, and for installing, waiting and removing.
// The error is an ErrRightsMissing that names each missing right and who needs it.
// Nothing is created. If the API server does not answer reviews, no right counts as
// missing.
func CheckRights(ctx context.Context, config *rest.Config, needs []Need) error {
	if config == nil {
		return errors.New("check rights: the rest.Config is nil")
	}
	c, err := client.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	return rights.Check(ctx, c, needs)
}
