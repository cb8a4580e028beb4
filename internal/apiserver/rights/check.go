package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// ErrMissing marks rights that are missing.
var ErrMissing = errors.New("rights are missing")

// Need is what one scenario is going to send.
type Need struct {
	// Who names the scenario, for messages.
	Who string
	// Requests are the requests. A Namespace that is empty or contains a placeholder is
	// created by the run.
	Requests []framework.Request
	// Grants is true if the run gives the users of Requests the rights for these.
	Grants bool
	// Metrics is true if the feature gates or the admission plugins of the API server must
	// be known.
	Metrics bool
}

// namespace represents the namespaces of a run in reviews. It does not exist yet: only
// rights in all namespaces are rights in it.
const namespace = "at-run-scenario"

// parallel limits the number of concurrent reviews.
const parallel = 16

// Check returns an ErrMissing that names each missing right and who needs it, or nil. It
// sends one review for an administrator, and one more for each right that the first
// does not cover. The client must have discovered the resources.
func Check(ctx context.Context, c *client.Client, needs []Need) error {
	granted, err := c.Rules(ctx, namespace)
	if err != nil || granted.All() {
		return err
	}
	if err := c.Discover(ctx); err != nil {
		return err
	}
	missing, err := denied(ctx, c, granted, wanted(c.Resources, needs))
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("user %s: %w: %s; nothing was created; \"admissiontest rbac\" prints the roles that a run needs, and --skip leaves out the scenarios that need these",
		cmp.Or(c.UserName(ctx), "of the kubeconfig"), ErrMissing, strings.Join(missing, ", "))
}

// denied returns the rights that are not granted, each with who needs it.
func denied(ctx context.Context, c *client.Client, granted client.Rules, wanted map[client.Right][]string) ([]string, error) {
	var mu sync.Mutex
	var missing []client.Right
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for right := range wanted {
		if granted.Cover(right) {
			continue
		}
		g.Go(func() error {
			allowed, err := c.May(ctx, right)
			if err == nil && !allowed {
				mu.Lock()
				missing = append(missing, right)
				mu.Unlock()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(missing, func(a, b client.Right) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.String(), b.String()))
	})
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String()
		if who := wanted[right]; len(who) > 0 {
			slices.Sort(who)
			who = slices.Compact(who)
			if len(who) > 2 {
				who = append(who[:1:1], fmt.Sprintf("%d more", len(who)-1))
			}
			texts[i] += " (" + strings.Join(who, " and ") + ")"
		}
	}
	return texts, nil
}
