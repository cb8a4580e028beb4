package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// Discover reads which kinds the API server serves.
func (c *Client) Discover(ctx context.Context) error {
	lists, err := c.ResourceLists(ctx)
	if err == nil {
		c.Resources.Add(lists...)
	}
	return err
}

// Discovery returns a client for discovery and the schemas of the API server, whose requests have a context.
func (c *Client) Discovery(ctx context.Context) (*discovery.DiscoveryClient, error) {
	own := *c.http
	own.Transport = inContext{ctx, c.http.Transport, semaphore.NewWeighted(parallelDiscovery)}
	return discovery.NewDiscoveryClientForConfigAndClient(c.config, &own)
}

// parallelDiscovery limits the number of concurrent requests: package discovery sends one for each group at once.
const parallelDiscovery = 32

// inContext gives requests a context, because the requests of package discovery have none.
type inContext struct {
	ctx   context.Context //nolint:containedctx // see above
	next  http.RoundTripper
	turns *semaphore.Weighted
}

// RoundTrip sends the request when fewer than parallelDiscovery are under way.
func (i inContext) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := i.turns.Acquire(i.ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for other requests: %w", err)
	}
	defer i.turns.Release(1)
	return i.next.RoundTrip(request.WithContext(i.ctx))
}

// ResourceLists returns what the API server serves, as discovery does. A list is empty if the API server cannot
// say what is in it: a broken aggregated API makes only its own group fail.
func (c *Client) ResourceLists(ctx context.Context) ([]*metav1.APIResourceList, error) {
	discoverer, err := c.Discovery(ctx)
	if err != nil {
		return nil, err
	}
	_, lists, err := discoverer.ServerGroupsAndResources()
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &failed) {
		err = ctx.Err()
		for version, why := range failed.Groups {
			if limit := (*LimitError)(nil); errors.As(why, &limit) {
				err = limit
			}
			lists = append(lists, &metav1.APIResourceList{GroupVersion: version.String()})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("discover resources of the API server: %w", withNoResponse(err))
	}
	return lists, nil
}
