package cluster

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/removal"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/rights"
)

// Cleanup removes everything that a run left on a cluster, or that any run left if run
// is empty, and waits until it is gone. It returns the objects that it found: one
// RESOURCE.GROUP/NAME each. The error names what is left. Progress can be nil.
func Cleanup(ctx context.Context, config *rest.Config, run string, progress func(string)) ([]string, error) {
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
	if progress == nil {
		progress = func(string) {}
	}
	return (&removal.Remover{Client: c, Progress: progress}).Cleanup(ctx, run)
}

// ErrRightsMissing marks rights that are missing for a run.
var ErrRightsMissing = rights.ErrMissing

// Need is what one scenario is going to send.
type Need = rights.Need

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
