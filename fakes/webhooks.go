package fakes

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/admissiontest/admissiontest/internal/suggest"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// ServiceResolver maps services to URLs. The key is "namespace/name:port", or "namespace/name" for
// every port. The zero value has no services.
//
//	fakes.InjectServiceResolver(fakes.ServiceResolver{"default/hooks:443": server.URL})
type ServiceResolver map[string]string

var _ webhook.ServiceResolver = ServiceResolver{}

// ResolveEndpoint implements webhook.ServiceResolver. It returns an error for a service that
// is not in the map, and for a value that is not a URL with a host.
func (r ServiceResolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	service := namespace + "/" + name
	with := net.JoinHostPort(service, strconv.Itoa(int(port)))
	address, ok := r[with]
	if !ok {
		address, ok = r[service]
	}
	if !ok {
		return nil, fmt.Errorf("resolve service %s: this fakes.ServiceResolver does not know it%s",
			with, suggest.DidYouMean(with, slices.Sorted(maps.Keys(r))))
	}
	where, err := url.Parse(address)
	if err != nil || where.Host == "" {
		return nil, fmt.Errorf("resolve service %s: %q is not a URL with a host, such as https://127.0.0.1:8443", with, address)
	}
	return where, nil
}

// AuthenticationInfo returns a wrapper that makes a plugin call every webhook with a copy of this
// configuration. Nil means an empty configuration.
func AuthenticationInfo(config *rest.Config) webhook.AuthenticationInfoResolverWrapper {
	if config == nil {
		config = &rest.Config{}
	}
	kept := rest.CopyConfig(config)
	return func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(string) (*rest.Config, error) { return rest.CopyConfig(kept), nil },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) {
				return rest.CopyConfig(kept), nil
			},
		}
	}
}

// keepResolver is the wrapper that leaves the resolver as it is.
func keepResolver(resolver webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return resolver
}
