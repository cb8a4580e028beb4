// Package rights finds out, before anything is created, whether the user has the
// rights that a run needs: those for the requests of its scenarios, and those for
// installing, fencing and removing ([Wanted]).
package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Check returns an ErrMissing that names each missing right and who needs it, or nil. It
// sends one review for an administrator, and one more for each right that the first
// does not grant.
func Check(ctx context.Context, c *client.Client, needs []Need) error {
	less, err := c.Missing(ctx, []client.Right{{Verb: "*", Group: "*", Resource: "*"}, {Verb: "*", Path: "*"}})
	if err != nil || len(less) == 0 {
		return err
	}
	if err := c.Discover(ctx); err != nil {
		return err
	}
	wanted := Wanted(c.Resources, needs)
	missing, err := c.Missing(ctx, slices.SortedFunc(maps.Keys(wanted), func(a, b client.Right) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.String(), b.String()))
	}))
	if err != nil || len(missing) == 0 {
		return err
	}
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String() + whoNeeds(wanted[right])
	}
	return fmt.Errorf("user %s: %w: %s; nothing was created; \"admissiontest rbac\" prints the roles that a run needs, and --skip leaves out the scenarios that need these",
		cmp.Or(c.UserName(ctx), "of the kubeconfig"), ErrMissing, strings.Join(texts, ", "))
}

// whoNeeds names the scenarios that need a right. No scenario stands for every run.
func whoNeeds(who []string) string {
	slices.Sort(who)
	who = slices.Compact(who)
	switch {
	case len(who) == 0:
		return ""
	case len(who) > 2:
		return fmt.Sprintf(" (%s and %d more)", who[0], len(who)-1)
	}
	return " (" + strings.Join(who, " and ") + ")"
}
