package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Client talks to one API server. Administrative requests are repeated while the API
// server is overloaded or does not respond (retry.go); requests under test never. Its methods can be called by several goroutines at
// the same time.
type Client struct {
	// Resources has the kinds that the server serves. It is empty before Discover.
	Resources *Resources

	config *rest.Config
	// begin returns a new backoff for each administrative request.
	begin    func() wait.Backoff
	http     *http.Client
	rest     rest.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	// fresh sends each request on a connection of its own. It is nil if there is only one API server: see FindReplicas.
	fresh *Client
}

// New creates a Client. It sends no request.
func New(config *rest.Config) (*Client, error) { return newWith(config, backoff) }

func newWith(config *rest.Config, begin func() wait.Backoff) (*Client, error) {
	if config == nil {
		return nil, errors.New("use API server: the rest.Config is nil: set Options.Config")
	}
	config = Limited(config)
	config.QPS = -1 // the API server limits requests itself
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &retrying{next: next, begin: begin} })
	c := &Client{config: config, begin: begin, Resources: NewResources()}
	if err := c.connect(); err != nil {
		return nil, fmt.Errorf("use API server at %s: %w", config.Host, err)
	}
	return c, nil
}

// WithoutSharing returns a configuration whose concurrent requests share no connection: with HTTP/2, one lost
// connection delays all of them.
func WithoutSharing(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.Transport == nil { // a transport has its own
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// connect creates the clients, which share one HTTP client.
func (c *Client) connect() (err error) {
	shared, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	own := *shared // it can be http.DefaultClient
	own.CheckRedirect = sameServer
	if c.config.ExecProvider != nil || c.config.AuthProvider != nil {
		own.Transport = detached{own.Transport}
	}
	c.http = &own
	unversioned := rest.CopyConfig(c.config)
	unversioned.NegotiatedSerializer = noCodec{}
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(unversioned, c.http); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(c.config, c.http); err != nil {
		return err
	}
	c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	return err
}

// detached is a transport whose requests end with their context: a credential plugin of a kubeconfig is a process
// that client-go waits for without the context.
type detached struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (d detached) RoundTrip(request *http.Request) (*http.Response, error) {
	type result struct {
		response *http.Response
		err      error
	}
	done := make(chan result, 1)
	go func() {
		response, err := d.next.RoundTrip(request) //nolint:bodyclose // the caller closes it, or the goroutine below
		done <- result{response, err}
	}()
	select {
	case all := <-done:
		return all.response, all.err
	case <-request.Context().Done():
		go func() {
			if late := <-done; late.err == nil {
				_ = late.response.Body.Close()
			}
		}()
		return nil, context.Cause(request.Context())
	}
}

// maxRedirects is the limit of net/http.
const maxRedirects = 10

// sameServer follows redirects of the API server to itself only. Any other one is the
// response: the transport would send the credentials with the next request too, and a
// backend that the API server proxies can redirect to any address.
func sameServer(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host || len(before) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// Config returns the configuration of the Client.
func (c *Client) Config() *rest.Config { return c.config }

// Host returns the address of the API server, for messages.
func (c *Client) Host() string { return c.config.Host }

// Close closes idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
}
