package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// The limits of a response. Of a cluster with 1,000 CustomResourceDefinitions, discovery has some MiB and about
// 200,000 JSON values; long lists come in pages.
const (
	responseBytes = 64 << 20
	// responseValues limits what a response becomes in memory: "{}," can become an object of some hundred bytes.
	responseValues = 2_000_000
	// binaryBytes is the limit of a response in Protobuf or CBOR, whose values are not counted.
	binaryBytes = 4 << 20
	// errorBytes is the limit of an error, whose text is printed.
	errorBytes = 4 << 20
	// sentBytes is the limit of the response to a request under test. An object has at most 3 MiB.
	sentBytes = 8 << 20
	// discoveryValues limits all responses of a discovery together.
	discoveryValues = 1_000_000
	// responseTime limits one request, to the end of the response. The API server's own limit is 60 s.
	responseTime = 90 * time.Second
)

// LimitError is the error of a response that is too large or too slow. The rest of it was not read.
type LimitError struct {
	URL string
	// Read is the number of bytes of the response that were read. 0 means that it is not about one response.
	Read int64
	// Limit says which limit was exceeded.
	Limit string
}

// Error names the URL, the bytes that were read, and the limit.
func (e *LimitError) Error() string {
	after := ""
	if e.Read > 0 {
		after = fmt.Sprintf(" after %d bytes", e.Read)
	}
	return fmt.Sprintf("%s: the API server sends too much%s: the limit is %s; is this a Kubernetes API server?", e.URL, after, e.Limit)
}

// errSlow is the cause of a request that has exceeded responseTime.
var errSlow = errors.New("the response did not end in time")

// limits is what may still be read, by one response or by all responses of a context.
type limits struct {
	allowedBytes, allowedValues int64
	bytes, values               atomic.Int64 // that were read
}

// limitsKey is the key of a context whose responses share limits.
type limitsKey struct{}

// withLimits returns a context whose responses have limits together.
func withLimits(ctx context.Context, bytes, values int64) context.Context {
	return context.WithValue(ctx, limitsKey{}, &limits{allowedBytes: bytes, allowedValues: values})
}

// Limited returns a copy of a configuration whose responses have limits: of bytes after decompression, of JSON
// values, and of time. The error of reading one that exceeds them is a LimitError.
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
	body := &limitedBody{request: request, time: l.time}
	body.limits, _ = request.Context().Value(limitsKey{}).(*limits)
	if body.limits == nil {
		body.limits = &limits{allowedBytes: responseBytes, allowedValues: responseValues}
	}
	body.ctx, body.cancel = context.WithCancelCause(request.Context())
	body.timer = time.AfterFunc(l.time, func() { body.cancel(errSlow) })
	response, err := l.next.RoundTrip(request.WithContext(body.ctx))
	if err != nil {
		err = body.slow(err)
		body.end()
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols { // it has no end
		body.timer.Stop()
		return response, nil
	}
	body.isError = response.StatusCode >= http.StatusBadRequest
	body.inner, response.Body = response.Body, body
	return response, nil
}

// limitedBody is the body of a response with limits.
type limitedBody struct {
	inner   io.ReadCloser
	request *http.Request
	ctx     context.Context //nolint:containedctx // that of the request
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	time    time.Duration
	limits  *limits
	isError bool
	// json and binary are the format of the response.
	json, binary bool
	read         int64
	failed       error
}

// Read reads, or fails when a limit was exceeded.
func (b *limitedBody) Read(data []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.inner.Read(data)
	if b.read == 0 {
		b.json, b.binary = format(data[:n])
	}
	values := int64(0)
	if b.json {
		values = valuesIn(data[:n])
	}
	b.read += int64(n)
	switch {
	case b.limits.bytes.Add(int64(n)) > b.limits.allowedBytes:
		err = b.exceeded(fmt.Sprintf("%d bytes", b.limits.allowedBytes))
	case b.limits.values.Add(values) > b.limits.allowedValues:
		err = b.exceeded(fmt.Sprintf("%d JSON values", b.limits.allowedValues))
	case b.isError && b.read > errorBytes:
		err = b.exceeded(fmt.Sprintf("%d bytes of an error", errorBytes))
	case b.binary && b.read > binaryBytes:
		err = b.exceeded(fmt.Sprintf("%d bytes of a binary response", binaryBytes))
	case err != nil && !errors.Is(err, io.EOF):
		err = b.slow(err)
	}
	b.failed = err
	return n, err
}

// Close ends the request.
func (b *limitedBody) Close() error {
	err := b.inner.Close()
	b.end()
	return err
}

func (b *limitedBody) end() {
	b.timer.Stop()
	b.cancel(nil)
}

func (b *limitedBody) exceeded(limit string) error {
	return &LimitError{URL: b.request.URL.Redacted(), Read: b.read, Limit: limit}
}

// slow returns an error of the request, or a LimitError if it took too long.
func (b *limitedBody) slow(err error) error {
	if errors.Is(context.Cause(b.ctx), errSlow) {
		return b.exceeded(b.time.String())
	}
	return err
}

// format is what the first bytes of a response say about it. (What JSON parsers accept begins with a bracket or white
// space; Protobuf of Kubernetes begins with "k8s\0", and CBOR with a byte above 0x7f.)
func format(begin []byte) (json, binary bool) {
	if len(begin) == 0 {
		return false, false
	}
	json = bytes.IndexByte([]byte("{[ \t\r\n"), begin[0]) >= 0
	return json, !json && (begin[0] > 0x7f || bytes.IndexByte(begin[:min(len(begin), len("k8s\x00"))], 0) >= 0)
}

// valuesIn returns the number of JSON values that begin in a part of a response, about: one for each comma and each
// bracket that opens, also in texts.
func valuesIn(part []byte) int64 {
	return int64(bytes.Count(part, []byte{','}) + bytes.Count(part, []byte{'{'}) + bytes.Count(part, []byte{'['}))
}
