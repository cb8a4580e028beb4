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
)

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
