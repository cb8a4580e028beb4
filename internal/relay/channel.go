package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/minor"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/relay/tunnel"
)

// redialLimit is the limit for the time without a channel. It includes a replacement of the
// pod.
const redialLimit = 45 * time.Second

// backoff is the backoff between two attempts to open a channel.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 100, Cap: 2 * time.Second}
}

// hold serves the channel. If it breaks, it opens another. It returns when ctx ends, or when
// no channel can be opened.
func (s *Service) hold(ctx context.Context, channel io.ReadWriteCloser) {
	for {
		s.setOpen(channel)
		broke := tunnel.Serve(ctx, channel, tunnel.Hooks{Dial: s.dialHooks, Lost: s.noteLost})
		s.setOpen(nil)
		if ctx.Err() != nil {
			return
		}
		limited, cancel := processes.WithTimeout(ctx, redialLimit)
		opened, err := s.dialUntil(limited)
		cancel()
		if ctx.Err() != nil {
			if opened != nil {
				_ = opened.Close()
			}
			return
		}
		if err != nil {
			s.mu.Lock()
			s.lost = fmt.Errorf("hooks in the cluster: %w: the channel to the pod in namespace %s broke (%w) and cannot be opened again: %w", framework.ErrNoResponse, s.namespace, broke, err)
			s.mu.Unlock()
			s.options.Progress(s.lost.Error())
			return
		}
		s.options.Progress("the channel to the relay pod broke and was opened again")
		channel = opened
	}
}

func (s *Service) setOpen(channel io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = channel
}

// cut breaks the channel, like a network failure. Tests use it.
func (s *Service) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		_ = s.open.Close()
	}
}

// dialUntil opens a channel to a ready pod. It retries until ctx ends, or until the Relay
// refuses the token, which it will not accept later. The error is that of the last attempt.
func (s *Service) dialUntil(ctx context.Context) (io.ReadWriteCloser, error) {
	var opened io.ReadWriteCloser
	var last error
	err := backoff().DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var err error
		if opened, err = s.dialReady(ctx); err == nil {
			return true, nil
		}
		if ctx.Err() == nil || last == nil { // an attempt that ctx ended does not have the reason
			last = err
		}
		if errors.Is(err, tunnel.ErrRefused) {
			return false, err
		}
		return false, nil
	})
	switch {
	case err == nil:
		return opened, nil
	case last == nil:
		return nil, fmt.Errorf("open channel: %w", err)
	default:
		return nil, fmt.Errorf("open channel: %w", last)
	}
}

// dialReady opens a channel to the pod, if it is ready.
func (s *Service) dialReady(ctx context.Context) (io.ReadWriteCloser, error) {
	pod, err := s.pod(ctx)
	if err != nil {
		return nil, err
	}
	if pod == nil || !ready(pod) {
		return nil, errors.New("no pod is ready")
	}
	return s.dial(ctx, pod)
}

// dial opens one channel to a pod.
func (s *Service) dial(ctx context.Context, pod *corev1.Pod) (io.ReadWriteCloser, error) {
	newer, older, err := s.dialers(pod)
	if err != nil {
		return nil, fmt.Errorf("forward port of pod %s: %w", pod.Name, err)
	}
	dialer := portforward.NewFallbackDialer(newer, older, func(err error) bool {
		return minor.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		connection httpstream.Connection
		err        error
	}
	results := make(chan result, 1)
	go func() { // Dial has no context
		connection, _, err := dialer.Dial(constants.PortForwardV1Name)
		results <- result{connection, err}
	}()
	var dialled result
	select {
	case dialled = <-results:
	case <-ctx.Done():
		go func() {
			if late := <-results; late.err == nil {
				_ = late.connection.Close()
			}
		}()
		return nil, fmt.Errorf("forward port of pod %s: %w", pod.Name, context.Cause(ctx))
	}
	if dialled.err != nil {
		return nil, fmt.Errorf("forward port of pod %s: %w", pod.Name, dialled.err)
	}
	channel, err := forward(dialled.connection)
	if err != nil {
		return nil, fmt.Errorf("forward port of pod %s: %w", pod.Name, errors.Join(err, dialled.connection.Close()))
	}
	if err := tunnel.Greet(ctx, channel, s.token); err != nil {
		_ = channel.Close()
		if text := channel.remoteError(); text != "" {
			return nil, fmt.Errorf("forward port of pod %s: %s", pod.Name, text)
		}
		return nil, err
	}
	return channel, nil
}

// dialers return dialers for pods/portforward: by websocket, and by SPDY if the API server or
// a proxy before it does not support websockets.
func (s *Service) dialers(pod *corev1.Pod) (newer, older httpstream.Dialer, err error) {
	address := s.core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(s.options.Config)
	if err != nil {
		return nil, nil, err
	}
	// The transport would send the credentials to any address that a response redirects to.
	direct := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	older = spdy.NewDialer(upgrader, direct, http.MethodPost, address)
	newer, err = portforward.NewSPDYOverWebsocketDialer(address, s.options.Config)
	return newer, older, err
}

// forwarded is a connection to a port of a pod.
type forwarded struct {
	httpstream.Stream // the data
	connection        httpstream.Connection
	errors            chan string // the content of the error stream, when it has ended
}

// forward opens a connection to the control port of the Relay.
func forward(connection httpstream.Connection) (*forwarded, error) {
	header := http.Header{}
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	header.Set(corev1.PortHeader, strconv.Itoa(controlPort))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	errorStream, err := connection.CreateStream(header)
	if err != nil {
		return nil, fmt.Errorf("open error stream: %w", err)
	}
	_ = errorStream.Close() // nothing is written to it
	f := &forwarded{connection: connection, errors: make(chan string, 1)}
	go func() {
		text, _ := io.ReadAll(io.LimitReader(errorStream, 4096))
		f.errors <- strings.TrimSpace(string(text))
		if len(text) > 0 { // the data stream does not end by itself
			_ = connection.Close()
		}
	}()
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	if f.Stream, err = connection.CreateStream(header); err != nil {
		return nil, fmt.Errorf("open data stream: %w", err)
	}
	return f, nil
}

// remoteError returns the error that the other side reported, or "". Call it after Close.
func (f *forwarded) remoteError() string { return <-f.errors }

// Close closes the connection and all its streams.
func (f *forwarded) Close() error {
	_ = f.Stream.Reset()
	return f.connection.Close()
}
