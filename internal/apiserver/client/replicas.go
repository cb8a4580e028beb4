package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
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

// replica is one of several API servers of a cluster, at its own address.
type replica struct {
	address string
	client  *Client
}

// FindReplicas finds the API servers of the cluster in the EndpointSlices of the
// Service kubernetes. SendToAll then sends to each replica that can be reached from
// here and whose certificate is valid. FindReplicas returns a message for each replica
// that is left out. If there is only one API server, or the EndpointSlices cannot be
// read, SendToAll is Send.
func (c *Client) FindReplicas(ctx context.Context) (unreachable []string) {
	slices, err := discoveryclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil
	}
	list, err := slices.EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil
	}
	addresses := endpointAddresses(list.Items)
	if len(addresses) < 2 {
		return nil
	}
	for _, address := range addresses {
		one, err := c.dialReplica(ctx, address)
		if err != nil {
			unreachable = append(unreachable, fmt.Sprintf(
				"cannot reach API server %s, one of %d: cannot verify that it uses the same configuration as the others: %v", address, len(addresses), err))
			continue
		}
		c.replicas = append(c.replicas, one)
	}
	return unreachable
}

// endpointAddresses returns host:port of each endpoint that is ready.
func endpointAddresses(slices []discoveryv1.EndpointSlice) []string {
	var addresses []string
	for _, slice := range slices {
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
func (c *Client) dialReplica(ctx context.Context, address string) (replica, error) {
	if !verifies(c.config) {
		return replica{}, errUnverified
	}
	config := rest.CopyConfig(c.config)
	config.Host, config.ServerName = "https://"+address, apiServerName
	one, err := New(config)
	if err != nil {
		return replica{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	_, err = one.Version(ctx)
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err // without the URL
	}
	if err != nil {
		one.Close()
		return replica{}, err
	}
	return replica{address: address, client: one}, nil
}

// SendToAll sends a request to the API server and then to each replica, until one of
// the responses lacks something. Lacks returns what a response lacks, or "".
func (c *Client) SendToAll(ctx context.Context, r HTTPRequest, lacks func(framework.Result) string) (answer framework.Result, missing string, err error) {
	answer, err = c.Send(ctx, r)
	if err != nil {
		return answer, "", err
	}
	if missing := lacks(answer); missing != "" {
		return answer, missing, nil
	}
	for _, one := range c.replicas {
		answer, err := one.client.Send(ctx, r)
		if err != nil {
			return answer, "", fmt.Errorf("API server %s: %w", one.address, err)
		}
		if missing := lacks(answer); missing != "" {
			return answer, missing + ", on API server " + one.address, nil
		}
	}
	return answer, "", nil
}
