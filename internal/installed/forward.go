package installed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// ErrUnreachable is the error of a Service that leads to no ready Pod.
var ErrUnreachable = errors.New("the webhook cannot be reached")

// Forward returns an address of this machine at which a Pod of the Service answers, until the context ends: as a port-forward of
// kubectl. For webhooks by URL it returns URL. The error is an ErrRight, an ErrUnreachable, or comes from the API server.
func (b *Backend) Forward(ctx context.Context) (address string, err error) {
	if b.URL != "" {
		return b.URL, nil
	}
	client, err := kubernetes.NewForConfig(b.config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	pod, port, err := b.pod(ctx, client)
	if err != nil {
		return "", err
	}
	transport, upgrader, err := spdy.RoundTripperFor(b.config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	at := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(b.service.Namespace).Name(pod).SubResource("portforward").URL()
	f := &forwarder{dialer: spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), port: port}
	if err := f.answers(); err != nil {
		err = rightsMissing(err, `{apiGroups: [""], resources: [pods/portforward], verbs: [create]}`)
		return "", fmt.Errorf("forward port %d of pod %s/%s: %w", port, b.service.Namespace, pod, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the port-forward: %w", err)
	}
	context.AfterFunc(ctx, func() {
		_ = listener.Close() // no call follows
		f.close()
	})
	go f.serve(listener)
	return "https://" + listener.Addr().String(), nil
}

// pod returns a ready Pod of the Service, and the port that the webhook listens on there.
func (b *Backend) pod(ctx context.Context, client kubernetes.Interface) (name string, port int32, err error) {
	service, err := client.CoreV1().Services(b.service.Namespace).Get(ctx, b.service.Name, metav1.GetOptions{})
	if err != nil {
		return "", 0, fmt.Errorf("get %s: %w", b, rightsMissing(err, `{apiGroups: [""], resources: [services], verbs: [get]}`))
	}
	portName, found := "", false
	for _, each := range service.Spec.Ports {
		if each.Port == *b.service.Port {
			portName, found = each.Name, true
		}
	}
	if !found {
		return "", 0, fmt.Errorf("%w: %s has no port %d, which clientConfig names", ErrUnreachable, b, *b.service.Port)
	}
	slices, err := client.DiscoveryV1().EndpointSlices(b.service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + b.service.Name})
	if err != nil {
		return "", 0, fmt.Errorf("list the EndpointSlices of %s: %w", b, rightsMissing(err, "{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}"))
	}
	for _, slice := range slices.Items {
		for _, each := range slice.Ports {
			if each.Port == nil || each.Name == nil && portName != "" || each.Name != nil && *each.Name != portName {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
				if ready && endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod" {
					return endpoint.TargetRef.Name, *each.Port, nil
				}
			}
		}
	}
	return "", 0, fmt.Errorf("%w: port %d of %s leads to no Pod that is ready", ErrUnreachable, *b.service.Port, b)
}

// forwarder carries connections to a port of a Pod. One connection to the API server carries all of them; if it ends, the next
// connection makes another one.
type forwarder struct {
	dialer httpstream.Dialer
	port   int32

	mu         sync.Mutex
	connection httpstream.Connection // guarded by mu; nil before the first
	next       int                   // guarded by mu: the ID of the next pair of streams
	ended      bool                  // guarded by mu
}

// open opens the streams of a connection: its data, and the errors of the Pod.
func (f *forwarder) open() (data, problems httpstream.Stream, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, nil, net.ErrClosed
	}
	if f.connection != nil {
		select {
		case <-f.connection.CloseChan():
			f.connection = nil
		default:
		}
	}
	if f.connection == nil {
		if f.connection, _, err = f.dialer.Dial(portforward.PortForwardProtocolV1Name); err != nil {
			f.connection = nil
			return nil, nil, err
		}
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(f.port)))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(f.next))
	f.next++
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	if problems, err = f.connection.CreateStream(headers); err != nil {
		return nil, nil, err
	}
	_ = problems.Close() // only the Pod writes
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err = f.connection.CreateStream(headers)
	return data, problems, err
}

func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.connection != nil {
		_ = f.connection.Close() // the streams end
	}
}

// answers returns why the port of the Pod does not accept a connection.
func (f *forwarder) answers() error {
	data, problems, err := f.open()
	if err != nil {
		return err
	}
	defer data.Reset() //nolint:errcheck // nothing was sent
	text := make(chan string, 1)
	go func() {
		problem, _ := io.ReadAll(problems) // it ends with the data
		text <- strings.TrimSpace(string(problem))
	}()
	enough := time.NewTimer(time.Second) // a refused connection is reported at once
	defer enough.Stop()
	select {
	case problem := <-text:
		if problem != "" {
			return fmt.Errorf("%w: %s", ErrUnreachable, problem)
		}
	case <-enough.C:
	}
	return nil
}

// serve carries the connections to a listener.
func (f *forwarder) serve(listener net.Listener) {
	for {
		local, err := listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		go f.carry(local)
	}
}

func (f *forwarder) carry(local net.Conn) {
	defer local.Close() //nolint:errcheck // the other side sees its end
	data, problems, err := f.open()
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(io.Discard, problems) }()
	go func() {
		_, _ = io.Copy(data, local) // the other side sees its end
		_ = data.Close()
	}()
	_, _ = io.Copy(local, data)
	_ = data.Reset()
}
