package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// The limits of a discovery, besides discoveryValues. Without aggregated discovery, each version of a group
// needs a request.
const (
	discoveryBytes    = 128 << 20
	discoveryTime     = 3 * time.Minute
	discoveryVersions = 10_000
	discoveryParallel = 64
)

// Discover reads which kinds the API server serves.
func (c *Client) Discover(ctx context.Context) error {
	lists, err := c.ResourceLists(ctx)
	if err == nil {
		c.Resources.Add(lists...)
	}
	return err
}

// Discovery returns a client for discovery and the schemas of the API server, whose requests have a context and
// limits together.
func (c *Client) Discovery(ctx context.Context) (*discovery.DiscoveryClient, error) {
	own := *c.http
	own.Transport = inContext{withLimits(ctx, discoveryBytes, discoveryValues), c.http.Transport}
	return discovery.NewDiscoveryClientForConfigAndClient(c.config, &own)
}

// inContext gives requests a context, because the requests of package discovery have none.
type inContext struct {
	ctx  context.Context //nolint:containedctx // see above
	next http.RoundTripper
}

// RoundTrip sends the request.
func (i inContext) RoundTrip(request *http.Request) (*http.Response, error) {
	return i.next.RoundTrip(request.WithContext(i.ctx))
}

// ResourceLists returns what the API server serves, as discovery does. A list is empty if the API server cannot
// say what is in it: a broken aggregated API makes only its own group fail.
func (c *Client) ResourceLists(ctx context.Context) ([]*metav1.APIResourceList, error) {
	limited, cancel := context.WithTimeoutCause(ctx, discoveryTime, fmt.Errorf("not done after %s, the limit", discoveryTime))
	defer cancel()
	lists, err := c.resourceLists(limited)
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, fmt.Errorf("discover resources of the API server: %w", withNoResponse(err))
	}
	return lists, nil
}

func (c *Client) resourceLists(ctx context.Context) ([]*metav1.APIResourceList, error) {
	discoverer, err := c.Discovery(ctx)
	if err != nil {
		return nil, err
	}
	groups, resources, failed, err := discoverer.GroupsAndMaybeResources()
	if err != nil {
		return nil, err
	}
	if resources == nil { // the API server does not aggregate discovery
		return c.listsOf(ctx, discoverer, groups)
	}
	var lists []*metav1.APIResourceList
	for version := range failed {
		lists = append(lists, &metav1.APIResourceList{GroupVersion: version.String()})
	}
	for _, list := range resources {
		lists = append(lists, list)
	}
	return lists, nil
}

// listsOf reads what is in each version of some groups.
func (c *Client) listsOf(ctx context.Context, discoverer *discovery.DiscoveryClient, groups *metav1.APIGroupList) ([]*metav1.APIResourceList, error) {
	var versions []string
	for _, group := range groups.Groups {
		for _, one := range group.Versions {
			versions = append(versions, schema.GroupVersion{Group: group.Name, Version: one.Version}.String())
		}
	}
	if len(versions) > discoveryVersions {
		return nil, &LimitError{URL: c.Host() + "/apis", Limit: fmt.Sprintf("%d versions of groups", discoveryVersions)}
	}
	var mu sync.Mutex
	var lists []*metav1.APIResourceList
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(discoveryParallel)
	for _, version := range versions {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			list, err := discoverer.ServerResourcesForGroupVersion(version)
			if limit := (*LimitError)(nil); errors.As(err, &limit) {
				return err
			}
			if err != nil || list == nil {
				list = &metav1.APIResourceList{GroupVersion: version}
			}
			mu.Lock()
			lists = append(lists, list)
			mu.Unlock()
			return nil
		})
	}
	err := g.Wait()
	return lists, err
}
