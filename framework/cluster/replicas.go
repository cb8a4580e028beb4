package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
)

// apiServerName is the name that the certificate of each API server of a cluster
// is valid for.
const apiServerName = "kubernetes.default.svc"

// replicaLimit is how long a replica may take to answer for the first time.
const replicaLimit = 3 * time.Second

// replica is one API server of several, by an address of its own.
type replica struct {
	address string
	client  *http.Client
	base    *url.URL
}

// findReplicas finds the API servers of the cluster by the EndpointSlices of the
// Service kubernetes. Those that answer are remembered, for the fence; of others
// Progress is told. With one, or where the list is refused, nothing is remembered.
func (t *Target) findReplicas(ctx context.Context) {
	answer, err := t.request(ctx, call{
		method: http.MethodGet, path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
		query: map[string][]string{"labelSelector": {"kubernetes.io/service-name=kubernetes"}},
	})
	if err != nil {
		return
	}
	addresses := endpointAddresses(answer.Fields())
	if len(addresses) < 2 {
		return
	}
	for _, address := range addresses {
		one, err := t.dialReplica(ctx, address)
		if err != nil {
			t.options.Progress(fmt.Sprintf("API server %s is one of %d and cannot be asked from here, so it is only hoped that it keeps up with the others: %v", address, len(addresses), err))
			continue
		}
		t.replicas = append(t.replicas, one)
	}
}

// endpointAddresses returns host:port of each endpoint that is ready.
func endpointAddresses(slices map[string]any) []string {
	var out []string
	items, _ := nestedSlice(slices, "items")
	for _, item := range items {
		slice, _ := item.(map[string]any)
		port := int64(443)
		for _, item := range asList(slice["ports"]) {
			one, _ := item.(map[string]any)
			if number, ok := one["port"].(int64); ok {
				port = number
			}
		}
		for _, item := range asList(slice["endpoints"]) {
			endpoint, _ := item.(map[string]any)
			conditions, _ := endpoint["conditions"].(map[string]any)
			if ready, said := conditions["ready"].(bool); said && !ready {
				continue
			}
			for _, address := range texts(endpoint["addresses"]) {
				out = append(out, net.JoinHostPort(address, strconv.FormatInt(port, 10)))
			}
		}
	}
	return out
}

// dialReplica asks an API server for its version.
func (t *Target) dialReplica(ctx context.Context, address string) (replica, error) {
	config := rest.CopyConfig(t.options.Config)
	config.Host = "https://" + address
	config.ServerName = apiServerName
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return replica{}, err
	}
	one := replica{address: address, client: client, base: &url.URL{Scheme: "https", Host: address}}
	ctx, cancel := context.WithTimeout(ctx, replicaLimit)
	defer cancel()
	answer, err := t.at(one).send(ctx, call{method: http.MethodGet, path: "/version"})
	if err == nil && !answer.Allowed() {
		err = fmt.Errorf("%d %s", answer.Status.Code, answer.Status.Message)
	}
	return one, err
}

// at returns a Target that sends to one replica. It is for send only.
func (t *Target) at(one replica) *Target {
	return &Target{options: t.options, client: one.client, base: one.base}
}

// probes sends a request to the API server, and to each replica there is.
func (t *Target) probes(ctx context.Context, probe call, judge func(answer framework.Result) (missing string)) (framework.Result, string, error) {
	answer, err := t.send(ctx, probe)
	if err != nil {
		return answer, "", err
	}
	if missing := judge(answer); missing != "" {
		return answer, missing, nil
	}
	for _, one := range t.replicas {
		answer, err := t.at(one).send(ctx, probe)
		if err != nil {
			return answer, "", fmt.Errorf("ask API server %s: %w", one.address, err)
		}
		if missing := judge(answer); missing != "" {
			return answer, missing + ", on API server " + one.address, nil
		}
	}
	return answer, "", nil
}
