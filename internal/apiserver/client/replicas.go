package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

// apiServerName is a name for which the certificate of every API server of a cluster
// is valid.
const apiServerName = "kubernetes.default.svc"

// replicaTimeout limits the first response of a replica.
const replicaTimeout = 3 * time.Second

// lookAgain is the age at which the list of the API servers of a cluster with several is read again.
const lookAgain = time.Second

// freshConnections is how many requests in a row SendToAll sends on connections of their own if an API server cannot be
// reached at its address. A load balancer that chooses one of two at random chooses the same for all of them once
// in 512 times.
const freshConnections = 10

// replicas are the API servers of a cluster, if there are several.
type replicas struct {
	mu sync.Mutex
	// several is true after there was more than one.
	several bool
	read    time.Time
	// byAddress has nil for one that cannot be reached, or could not be reached since it was found.
	byAddress map[string]*Client
	// chosen is the address of the one that gets the requests under test, if that is in byAddress.
	chosen string
	// fresh sends each request on a connection of its own. It is nil before it is needed.
	fresh *Client
}

// FindReplicas finds the API servers of the cluster in the EndpointSlices of the
// Service kubernetes. SendToAll then sends to each replica that can be reached from
// here and whose certificate is valid. FindReplicas returns a message for each other
// replica. If there is only one API server, or the EndpointSlices cannot be
// read, SendToAll is Send.
func (c *Client) FindReplicas(ctx context.Context) (unreachable []string) {
	c.replicas.mu.Lock()
	defer c.replicas.mu.Unlock()
	return c.findReplicas(ctx)
}

// findReplicas is FindReplicas while replicas.mu is locked. What is known already is kept, or left out if
// it is no longer in the EndpointSlices.
func (c *Client) findReplicas(ctx context.Context) (unreachable []string) {
	r := &c.replicas
	r.read = time.Now()
	reader, err := discoveryclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil
	}
	list, err := reader.EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil
	}
	addresses := endpointAddresses(list.Items)
	if r.several = r.several || len(addresses) > 1; !r.several {
		return nil
	}
	found := map[string]*Client{}
	for _, address := range addresses {
		one, known := r.byAddress[address]
		if !known {
			if one, err = c.dialReplica(ctx, address); err != nil {
				unreachable = append(unreachable, fmt.Sprintf("cannot reach API server %s, one of %d: %v: what is installed counts as effective there when %d requests in a row on new connections to %s find it effective",
					address, len(addresses), err, freshConnections, c.Host()))
			}
		}
		found[address] = one
	}
	for address, one := range r.byAddress {
		if _, listed := found[address]; !listed && one != nil {
			one.Close()
		}
	}
	r.byAddress = found
	return unreachable
}

// onNewConnections returns a client that sends each request on a connection of its own, or nil if there is no such
// client.
func (c *Client) onNewConnections() *Client {
	config := WithoutSharing(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return closing{next} })
	fresh, _ := New(config) // c has the same configuration
	return fresh
}

// closing is a transport that closes each connection after one request.
type closing struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (c closing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Close = true
	return c.next.RoundTrip(request)
}

// endpointAddresses returns host:port of each endpoint that is ready.
func endpointAddresses(all []discoveryv1.EndpointSlice) []string {
	var addresses []string
	for _, slice := range all {
		if slice.Labels[discoveryv1.LabelServiceName] != "kubernetes" {
			continue // the API server ignores selectors
		}
		port := int32(443)
		for _, one := range slice.Ports {
			port = ptr.Deref(one.Port, port)
		}
		for _, endpoint := range slice.Endpoints {
			if !ptr.Deref(endpoint.Conditions.Ready, true) {
				continue
			}
			for _, address := range endpoint.Addresses {
				addresses = append(addresses, net.JoinHostPort(address, strconv.Itoa(int(port))))
			}
		}
	}
	return addresses
}

// errUnverified is the error of an address to which no credentials are sent.
var errUnverified = errors.New("this configuration cannot verify its certificate, and its address comes from an EndpointSlice, which other clients can write: admissiontest sends it no credentials; use a certificate authority instead of insecure-skip-tls-verify")

// verifies reports whether connections to other addresses than the given one, for the
// name apiServerName, have a certificate that is verified before anything is sent. A
// RoundTripper in the configuration ignores ServerName and can do anything.
func verifies(config *rest.Config) bool { return !config.Insecure && config.Transport == nil }

// dialReplica creates the client of a replica and waits for its first response. Nothing
// is sent before its certificate was verified.
func (c *Client) dialReplica(ctx context.Context, address string) (*Client, error) {
	if !verifies(c.config) {
		return nil, errUnverified
	}
	config := rest.CopyConfig(c.config)
	config.Host, config.ServerName = "https://"+address, apiServerName
	one, err := New(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	_, err = one.Version(ctx)
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err // without the URL
	}
	if err == nil && one.UserName(ctx) != c.UserName(ctx) {
		err = errors.New("the credentials belong to another user there")
	}
	if err != nil {
		one.Close()
		return nil, err
	}
	return one, nil
}

// route is a way to an API server. The address is empty for the one of the Client itself, and for a new connection.
type route struct {
	client        *Client
	address, name string
}

// routes returns the ways to all API servers of the cluster.
func (c *Client) routes(ctx context.Context) []route {
	r := &c.replicas
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.several && time.Since(r.read) > lookAgain {
		limited, cancel := context.WithTimeout(once(ctx), replicaTimeout)
		defer cancel()
		c.findReplicas(limited)
	}
	all, unreached := []route{{client: c}}, false
	for _, address := range slices.Sorted(maps.Keys(r.byAddress)) {
		if one := r.byAddress[address]; one != nil {
			all = append(all, route{one, address, ", on API server " + address})
		} else {
			unreached = true
		}
	}
	if unreached && r.fresh == nil {
		r.fresh = c.onNewConnections()
	}
	for range freshConnections {
		if unreached && r.fresh != nil {
			all = append(all, route{client: r.fresh, name: ", on a new connection"})
		}
	}
	return all
}

// choose returns the way of the requests under test. If replicas can be reached, that is always the same one of them:
// with a load balancer that chooses one for each request, a step of a scenario could be handled by one that does not
// know yet what the step before it wrote.
func (c *Client) choose() route {
	r := &c.replicas
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, address := range slices.Sorted(maps.Keys(r.byAddress)) {
		if r.byAddress[r.chosen] == nil {
			r.chosen = address
		}
	}
	if one := r.byAddress[r.chosen]; one != nil {
		return route{client: one, address: r.chosen}
	}
	return route{client: c}
}

// send sends a request to the API server of a route. One to which no connection can be made counts as one that cannot
// be reached from then on.
func (c *Client) send(ctx context.Context, to route, r HTTPRequest) (framework.Result, error) {
	answer, err := to.client.sendTo(ctx, r)
	if failed := (*net.OpError)(nil); to.address != "" && ctx.Err() == nil && errors.As(err, &failed) && failed.Op == "dial" {
		c.replicas.mu.Lock()
		defer c.replicas.mu.Unlock()
		if c.replicas.byAddress[to.address] == to.client {
			c.replicas.byAddress[to.address] = nil
		}
	}
	return answer, err
}

// SendToAll sends a request to the API server and then to each replica, until one of
// the responses lacks something. Lacks returns what a response lacks, or "". If a replica cannot be reached, the
// request is also sent on new connections.
func (c *Client) SendToAll(ctx context.Context, r HTTPRequest, lacks func(framework.Result) string) (answer framework.Result, missing string, err error) {
	for _, one := range c.routes(ctx) {
		if answer, err = c.send(ctx, one, r); err != nil {
			return answer, "", err
		}
		if missing = lacks(answer); missing != "" {
			return answer, missing + one.name, nil
		}
	}
	return answer, "", nil
}
