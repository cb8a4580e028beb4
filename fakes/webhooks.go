package fakes

import (
	"fmt"
	"net/url"

	"k8s.io/apiserver/pkg/util/webhook"
)

// noServices is a webhook.ServiceResolver that knows no service.
type noServices struct{}

// ResolveEndpoint implements webhook.ServiceResolver.
func (noServices) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return nil, fmt.Errorf("resolve service %s/%s:%d: the test has no services: give the plugin a webhook.ServiceResolver with fakes.InjectServiceResolver", namespace, name, port)
}

// keepResolver is the wrapper that leaves the resolver as it is.
func keepResolver(resolver webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return resolver
}
