package client

import (
	"context"
	"fmt"
	"net/http"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

// freshConnections is how many requests in a row SendToAll sends on connections of their own to a cluster with several
// API servers. A load balancer that chooses one of two at random chooses the same for all of them once in 500,000 times.
const freshConnections = 20

// FindReplicas finds out from the EndpointSlices of the Service kubernetes whether the cluster has several API servers
// behind the address of the client, and returns a message if it does. SendToAll then sends on new connections too. If
// there is only one API server, or the EndpointSlices cannot be read, the message is empty, and SendToAll is Send. Call it before
// other methods.
func (c *Client) FindReplicas(ctx context.Context) (message string) {
	reader, err := discoveryclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return ""
	}
	list, err := reader.EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return ""
	}
	count := readyEndpoints(list.Items)
	if count < 2 {
		return ""
	}
	if c.fresh, err = c.onNewConnections(); err != nil {
		return ""
	}
	return fmt.Sprintf("the cluster has %d API servers: what is installed counts as effective when %d requests in a row on new connections to %s find it effective",
		count, freshConnections, c.Host())
}

// onNewConnections returns a client that sends each request on a connection of its own.
func (c *Client) onNewConnections() (*Client, error) {
	config := WithoutSharing(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return closing{next} })
	return New(config)
}

// closing is a transport that closes each connection after one request.
type closing struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (c closing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Close = true
	return c.next.RoundTrip(request)
}

// readyEndpoints returns how many addresses are ready.
func readyEndpoints(all []discoveryv1.EndpointSlice) int {
	count := 0
	for _, slice := range all {
		if slice.Labels[discoveryv1.LabelServiceName] != "kubernetes" {
			continue // the API server ignores selectors
		}
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				count += len(endpoint.Addresses)
			}
		}
	}
	return count
}

// SendToAll sends a request to the API server. If the cluster has several, it then sends it on new connections, until
// one of the responses lacks something. Lacks returns what a response lacks, or "".
func (c *Client) SendToAll(ctx context.Context, r HTTPRequest, lacks func(framework.Result) string) (answer framework.Result, missing string, err error) {
	if answer, err = c.Send(ctx, r); err != nil {
		return answer, "", err
	}
	missing = lacks(answer)
	for n := 0; c.fresh != nil && missing == "" && n < freshConnections; n++ {
		if answer, err = c.fresh.Send(ctx, r); err != nil {
			return answer, "", err
		}
		if missing = lacks(answer); missing != "" {
			missing += ", on a new connection"
		}
	}
	return answer, missing, nil
}
