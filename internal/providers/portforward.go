package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/admissiontest/admissiontest/internal/minor"
	"github.com/admissiontest/admissiontest/internal/relay"
)

// dial opens the channel to the pod: by websocket, and by SPDY if the API server or a proxy before it does not
// support websockets.
func (s *inCluster) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	newer, older, err := s.dialers()
	if err != nil {
		return nil, err
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
	select {
	case dialled := <-results:
		if dialled.err != nil {
			return nil, dialled.err
		}
		return s.greet(ctx, dialled.connection)
	case <-ctx.Done():
		go func() {
			if late := <-results; late.err == nil {
				_ = late.connection.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// dialers return dialers for pods/portforward, by websocket and by SPDY.
func (s *inCluster) dialers() (newer, older httpstream.Dialer, err error) {
	address := s.core.RESTClient().Post().Resource("pods").Namespace(s.namespace).Name("hooks").SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return nil, nil, err
	}
	// The transport would send the credentials to any address that a response redirects to.
	direct := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	older = spdy.NewDialer(upgrader, direct, http.MethodPost, address)
	newer, err = portforward.NewSPDYOverWebsocketDialer(address, s.config)
	return newer, older, err
}

// forwarded is a connection to a port of a pod.
type forwarded struct {
	httpstream.Stream // the data
	connection        httpstream.Connection
}

// Close closes the connection and all its streams.
func (f forwarded) Close() error {
	_ = f.Stream.Reset()
	return f.connection.Close()
}

// greet opens a stream to the control port of the Relay, and greets it.
func (s *inCluster) greet(ctx context.Context, connection httpstream.Connection) (io.ReadWriteCloser, error) {
	header := http.Header{}
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	header.Set(corev1.PortHeader, strconv.Itoa(controlPort))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	problems, err := connection.CreateStream(header)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open error stream: %w", err), connection.Close())
	}
	_ = problems.Close() // nothing is written to it
	reported := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(problems, 4096))
		reported <- strings.TrimSpace(string(text))
		if len(text) > 0 { // the data stream does not end by itself
			_ = connection.Close()
		}
	}()
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(header)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open data stream: %w", err), connection.Close())
	}
	channel := forwarded{data, connection}
	if err := relay.Greet(ctx, channel, s.token); err != nil {
		_ = channel.Close()
		if text := <-reported; text != "" {
			return nil, errors.New(text)
		}
		return nil, err
	}
	return channel, nil
}
