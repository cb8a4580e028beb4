package installed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
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

// mostReplicas is how many Pods of a Service are called.
const mostReplicas = 3

// Forward returns addresses of this machine at which Pods of the Service answer, until the context ends: as port-forwards of
// kubectl, to three Pods at most. For webhooks by URL it returns URL. The error is an ErrRight, an ErrUnreachable, or comes from the
// API server.
func (b *Backend) Forward(ctx context.Context) (addresses []string, err error) {
	if b.URL != "" {
		return []string{b.URL}, nil
	}
	client, err := kubernetes.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	pods, err := b.pods(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, each := range pods {
		address, err := b.forward(ctx, client, each)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// pod is a port of a Pod.
type pod struct {
	name string
	port int32
}

// forward returns an address at which a Pod answers.
func (b *Backend) forward(ctx context.Context, client kubernetes.Interface, to pod) (address string, err error) {
	transport, upgrader, err := spdy.RoundTripperFor(b.config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	at := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(b.service.Namespace).Name(to.name).SubResource("portforward").URL()
	f := &forwarder{dialer: spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), port: to.port}
	if err := f.answers(); err != nil {
		err = rightsMissing(err, `{apiGroups: [""], resources: [pods/portforward], verbs: [create]}`)
		return "", fmt.Errorf("forward port %d of pod %s/%s: %w", to.port, b.service.Namespace, to.name, err)
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

// pods returns ready Pods of the Service, with the port that the webhook listens on there.
func (b *Backend) pods(ctx context.Context, client kubernetes.Interface) (found []pod, err error) {
	service, err := client.CoreV1().Services(b.service.Namespace).Get(ctx, b.service.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", b, rightsMissing(err, `{apiGroups: [""], resources: [services], verbs: [get]}`))
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *b.service.Port })
	if at < 0 {
		return nil, fmt.Errorf("%w: %s has no port %d, which clientConfig names", ErrUnreachable, b, *b.service.Port)
	}
	portName := service.Spec.Ports[at].Name
	list, err := client.DiscoveryV1().EndpointSlices(b.service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + b.service.Name})
	if err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of %s: %w", b, rightsMissing(err, "{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}"))
	}
	for _, slice := range list.Items {
		for _, each := range slice.Ports {
			if each.Port == nil || each.Name == nil && portName != "" || each.Name != nil && *each.Name != portName {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
				known := endpoint.TargetRef != nil && slices.Contains(found, pod{endpoint.TargetRef.Name, *each.Port}) // by its other address
				if ready && !known && endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod" && len(found) < mostReplicas {
					found = append(found, pod{endpoint.TargetRef.Name, *each.Port})
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: port %d of %s leads to no Pod that is ready", ErrUnreachable, *b.service.Port, b)
	}
	return found, nil
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
