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
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/relay/tunnel"
)

// redialLimit bounds the time without a channel, the pod's replacement included.
const redialLimit = 45 * time.Second

// backoff is between two attempts to open a channel.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 100, Cap: 2 * time.Second}
}

// hold serves the channel, and opens another when it breaks, until ctx is done or
// that cannot be done.
func (s *Service) hold(ctx context.Context, channel io.ReadWriteCloser) {
	for {
		s.setOpen(channel)
		broke := tunnel.Serve(ctx, channel, s.dialHooks)
		s.setOpen(nil)
		if ctx.Err() != nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, redialLimit)
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
			s.lost = fmt.Errorf("hooks in the cluster: %w: the channel to the pod in namespace %s (%w) cannot be opened again: %w", framework.ErrNoResponse, s.namespace, broke, err)
			s.mu.Unlock()
			s.options.Progress(s.lost.Error())
			return
		}
		s.options.Progress("the channel to the Hooks' pod broke; another is open")
		channel = opened
	}
}

func (s *Service) setOpen(channel io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = channel
}

// cut breaks the channel, as a network would.
func (s *Service) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		_ = s.open.Close()
	}
}

// dialUntil opens a channel to whichever pod is ready, and tries again until ctx is
// done. A Relay that refuses the token will not accept it later.
func (s *Service) dialUntil(ctx context.Context) (io.ReadWriteCloser, error) {
	var opened io.ReadWriteCloser
	last := errors.New("no attempt")
	pause := backoff()
	for ctx.Err() == nil {
		pod, err := s.pod(ctx)
		if err == nil && (pod == nil || !ready(pod)) {
			err = errors.New("no pod is ready")
		}
		if err == nil {
			opened, err = s.dial(ctx, pod)
		}
		if err == nil {
			return opened, nil
		}
		if ctx.Err() == nil || last.Error() == "no attempt" {
			last = err
		}
		if errors.Is(err, tunnel.ErrRefused) {
			break
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil, fmt.Errorf("open channel: %w", last)
}

// dial opens one channel to a pod.
func (s *Service) dial(ctx context.Context, pod *corev1.Pod) (io.ReadWriteCloser, error) {
	newer, older, err := s.dialers(pod)
	if err != nil {
		return nil, fmt.Errorf("forward port of pod %s: %w", pod.Name, err)
	}
	dialer := portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		connection httpstream.Connection
		err        error
	}
	results := make(chan result, 1)
	go func() { // Dial knows no context
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
		if said := channel.said(); said != "" {
			return nil, fmt.Errorf("forward port of pod %s: %s", pod.Name, said)
		}
		return nil, err
	}
	return channel, nil
}

// dialers reach pods/portforward: by websocket, and by SPDY for where the API
// server or what is before it does not know that.
func (s *Service) dialers(pod *corev1.Pod) (newer, older httpstream.Dialer, err error) {
	address := s.core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(s.options.Config)
	if err != nil {
		return nil, nil, err
	}
	older = spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	newer, err = portforward.NewSPDYOverWebsocketDialerForStreaming(address, s.options.Config)
	return newer, older, err
}

// forwarded is a connection to a port of a pod.
type forwarded struct {
	httpstream.Stream // of data
	connection        httpstream.Connection
	complaint         chan string // what the other side has to say about its end
}

// forward asks for the Relay's control port.
func forward(connection httpstream.Connection) (*forwarded, error) {
	header := http.Header{}
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	header.Set(corev1.PortHeader, strconv.Itoa(controlPort))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	complaints, err := connection.CreateStream(header)
	if err != nil {
		return nil, fmt.Errorf("open stream of errors: %w", err)
	}
	_ = complaints.Close() // nothing is written to it
	f := &forwarded{connection: connection, complaint: make(chan string, 1)}
	go func() {
		said, _ := io.ReadAll(io.LimitReader(complaints, 4096))
		f.complaint <- strings.TrimSpace(string(said))
		if len(said) > 0 { // the data ends without a word of its own
			_ = connection.Close()
		}
	}()
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	if f.Stream, err = connection.CreateStream(header); err != nil {
		return nil, fmt.Errorf("open stream of data: %w", err)
	}
	return f, nil
}

// said is what the other side complained about, after Close.
func (f *forwarded) said() string { return <-f.complaint }

// Close ends the connection and all its streams.
func (f *forwarded) Close() error {
	_ = f.Stream.Reset()
	return f.connection.Close()
}
