package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

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
