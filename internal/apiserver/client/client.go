package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

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

const (
	// responseBytes limits a response, after decompression. Of a cluster with 1,000 CustomResourceDefinitions,
	// discovery has some MiB; long lists come in pages.
	responseBytes = 64 << 20
	// responseTime limits one request, to the end of the response. The API server's own limit is 60 s.
	responseTime = 90 * time.Second
)

// LimitError is the error of a response that is too large or too slow. The rest of it was not read.
type LimitError struct {
	URL string
	// Limit says which limit was exceeded.
	Limit string
}

// Error names the URL and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: the API server sends too much or too slowly: the limit is %s; is this a Kubernetes API server?", e.URL, e.Limit)
}

// Limited returns a copy of a configuration whose responses have limits of bytes and of time. The error of reading one
// that exceeds them is a LimitError.
func Limited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limitedResponses{next, responseTime} })
	return config
}

type limitedResponses struct {
	next http.RoundTripper
	time time.Duration
}

// RoundTrip sends the request.
func (l limitedResponses) RoundTrip(request *http.Request) (*http.Response, error) {
	url := request.URL.Redacted()
	ctx, cancel := context.WithTimeoutCause(request.Context(), l.time, &LimitError{URL: url, Limit: l.time.String()})
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, tooSlow(ctx, err)
	}
	response.Body = &limitedBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, url: url}
	return response, nil
}

// tooSlow returns an error of a request, or the LimitError if it took too long.
func tooSlow(ctx context.Context, err error) error {
	if limit := (*LimitError)(nil); errors.As(context.Cause(ctx), &limit) {
		return limit
	}
	return err
}

// limitedBody is the body of a response with limits.
type limitedBody struct {
	io.ReadCloser

	ctx    context.Context //nolint:containedctx // that of the request
	cancel context.CancelFunc
	url    string
	read   int64
}

// Read reads, or fails when a limit was exceeded.
func (b *limitedBody) Read(data []byte) (int, error) {
	if b.read > responseBytes {
		return 0, &LimitError{URL: b.url, Limit: fmt.Sprintf("%d bytes", responseBytes)}
	}
	n, err := b.ReadCloser.Read(data)
	b.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = tooSlow(b.ctx, err)
	}
	return n, err
}

// Close ends the request.
func (b *limitedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// backoff is the time between the attempts of an administrative request: in all 17 seconds
// or more, the restart of an API server. (It has no Cap: wait.Backoff ends when the time
// reaches it.)
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 12}
}

// onceKey is the key of a context whose requests are not repeated.
type onceKey struct{}

// once returns a context whose requests are not repeated.
func once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// retrying is a transport that repeats administrative requests when the API server is
// overloaded (429), not available (503, 504) or does not respond.
type retrying struct {
	next http.RoundTripper
	// begin returns a new backoff for each request.
	begin func() wait.Backoff
	// lost is the time of the last request without a response, in nanoseconds of Unix time.
	lost atomic.Int64
}

// restartTime is how long an API server may refuse allowed requests after it did not respond:
// a restarted server responds before its authorizer has read the roles.
const restartTime = 20 * time.Second

// RoundTrip sends a request until the API server handles it, or the backoff ends.
func (t *retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Context().Value(onceKey{}) != nil {
		return t.send(request)
	}
	pause := t.begin()
	for sent := request; ; {
		response, err := t.send(sent)
		if !t.transient(response, err) || pause.Steps <= 1 || request.Context().Err() != nil {
			return response, err
		}
		if response != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
			_ = response.Body.Close()
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-timer.C:
		case <-request.Context().Done():
			timer.Stop()
			return nil, request.Context().Err()
		}
		if sent, err = again(request); err != nil {
			return nil, err
		}
	}
}

// send sends a request once. If there is no response, it notes the time.
func (t *retrying) send(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		t.lost.Store(time.Now().UnixNano())
	}
	return response, err
}

// transient reports whether another attempt can succeed.
func (t *retrying) transient(response *http.Response, err error) bool {
	if limit := (*LimitError)(nil); errors.As(err, &limit) {
		return false
	}
	if err != nil {
		return true
	}
	if response.StatusCode == http.StatusForbidden {
		return time.Since(time.Unix(0, t.lost.Load())) < restartTime
	}
	return Overloaded(int32(response.StatusCode))
}

// again returns a copy of a request with its body from the beginning.
func again(request *http.Request) (*http.Request, error) {
	copied := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return copied, nil
	}
	if request.GetBody == nil {
		return nil, fmt.Errorf("repeat %s %s: the body cannot be read again", request.Method, request.URL.Path)
	}
	var err error
	copied.Body, err = request.GetBody()
	return copied, err
}
