package envtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// readyPoll is the time between two questions whether a server is ready.
	readyPoll = 25 * time.Millisecond
	// requestLimit is the limit of one request that asks whether a server is ready.
	requestLimit = 5 * time.Second
)

// gate answers controller-runtime's question whether a server is ready, when a check says that it is. A server cannot
// answer itself: controller-runtime asks without credentials, which kube-apiserver can refuse, and only by TCP,
// where etcd does not listen.
type gate struct {
	check   func(context.Context) error
	opened  func()                // is called once, when check returned nil
	last    atomic.Pointer[error] // of check
	server  *http.Server
	address *net.TCPAddr
}

// openGate opens a gate, which needs certificates if it is for https. Opened is called once, before the first answer.
func openGate(certificates *tls.Config, check func(context.Context) error, opened func()) (*gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the start of a server: %w", err)
	}
	g := &gate{check: check, opened: sync.OnceFunc(opened), address: listener.Addr().(*net.TCPAddr)} //nolint:forcetypeassert // the network is tcp
	if certificates != nil {
		listener = tls.NewListener(listener, certificates)
	}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: requestLimit, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = g.server.Serve(listener) }()
	return g, nil
}

// ServeHTTP answers when the check returns nil.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := wait.PollUntilContextCancel(r.Context(), readyPoll, true, func(ctx context.Context) (bool, error) {
		err := g.check(ctx)
		g.last.Store(&err)
		return err == nil, nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	g.opened()
}

// problem returns the error of the last check.
func (g *gate) problem() error {
	if last := g.last.Load(); last != nil {
		return *last
	}
	return errors.New("it was not started")
}

func (g *gate) close() { _ = g.server.Close() }

// getOK returns nil if the response to a GET has the status 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: got status %s, want 200", url, response.Status)
	}
	return nil
}
