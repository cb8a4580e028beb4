package relay

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"sync"
	"time"

	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	networkingv1client "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/relay/tunnel"
)

// startLimit is the limit from the creation of the pod to an open channel.
const startLimit = time.Minute

// closeLimit is the limit for the removal after Start failed.
const closeLimit = 30 * time.Second

// Options configure a Service. Config, Run, Image and Hooks are required.
type Options struct {
	// Config is the client configuration for the API server.
	Config *rest.Config
	// Run is the ID of the run, as in apiserver.Options.
	Run string
	// Image is the reference of an image that BuildImage made.
	Image string
	// PullPolicy decides when nodes pull the image. Empty means IfNotPresent, which also
	// works for an image that was loaded into the nodes.
	PullPolicy corev1.PullPolicy
	// Sources are the addresses from which the API server connects to pods. If there are any,
	// a NetworkPolicy admits connections from them alone. None means no NetworkPolicy.
	Sources []netip.Prefix
	// Hooks answers the calls. Start makes its certificates valid for the Service's name.
	Hooks *hook.Server
	// Progress receives one line for each step. Nil discards the lines.
	Progress func(string)
}

// Service is a Service and a pod that forward calls to a Hook server. Use Start to create one.
// Its methods are safe for concurrent use.
type Service struct {
	options   Options
	namespace string
	token     string
	clusterIP string
	listeners []hook.Listener

	core       corev1client.CoreV1Interface
	apps       appsv1.AppsV1Interface
	networking networkingv1client.NetworkingV1Interface

	grace   time.Duration // see watch
	end     context.CancelFunc
	channel sync.WaitGroup // the goroutine of hold

	mu   sync.Mutex
	open io.Closer // the channel, or nil
	lost error     // see Err
	// atRelay is the last number of connections that the relay lost, and changes how often it changed or a
	// connection could not be dialled: see LostConnections.
	atRelay, changes int
}

// Start creates a namespace with the objects and returns when a channel is open. It first
// removes the namespace of an earlier run with the same ID.
//
// It fails if rights are missing (before it creates anything), the image cannot be pulled, or
// the pod cannot be scheduled or crashes. The error comes within a minute, and the namespace
// is removed.
func Start(ctx context.Context, options Options) (*Service, error) {
	s, err := prepare(options)
	if err != nil {
		return nil, fmt.Errorf("start hooks in the cluster: %w", err)
	}
	if err := s.checkRights(ctx); err != nil {
		return nil, fmt.Errorf("start hooks in the cluster: %w", err)
	}
	if err := s.start(ctx); err != nil {
		err = fmt.Errorf("start hooks in the cluster: %w", err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// prepare checks the options and creates the clients.
func prepare(options Options) (*Service, error) {
	switch {
	case options.Config == nil:
		return nil, errors.New("Options.Config is nil; want a rest.Config")
	case options.Hooks == nil:
		return nil, errors.New("Options.Hooks is nil; want a hook.Server")
	case options.Image == "":
		return nil, errors.New("Options.Image is empty; want the reference of an image that `admissiontest image` made")
	case !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`).MatchString(options.Run):
		return nil, fmt.Errorf("Options.Run is %q: want at most 32 lower-case letters and digits", options.Run)
	}
	if options.PullPolicy == "" {
		options.PullPolicy = corev1.PullIfNotPresent
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	s := &Service{options: options, namespace: NamespacePrefix + options.Run, grace: 15 * time.Second, end: func() {}}
	config := apiserver.Limited(options.Config)
	config.QPS = -1 // the API server has its own limits (API Priority and Fairness)
	config.WarningHandler = rest.NoWarnings{}
	var errs [3]error
	s.core, errs[0] = corev1client.NewForConfig(config)
	s.apps, errs[1] = appsv1.NewForConfig(config)
	s.networking, errs[2] = networkingv1client.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("use API server at %s: %w", config.Host, err)
	}
	random := make([]byte, tunnel.TokenSize/2)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make token: %w", err)
	}
	s.token = hex.EncodeToString(random)
	return s, nil
}

// start creates the objects, waits for the pod and opens the channel.
func (s *Service) start(ctx context.Context) error {
	var err error
	if s.listeners, err = s.options.Hooks.Listeners(); err != nil {
		return err
	}
	if err := s.options.Hooks.AddNames(s.Host()); err != nil {
		return err
	}
	s.options.Progress("starting the relay pod in namespace " + s.namespace)
	if err := s.create(ctx); err != nil {
		return err
	}
	if err := s.options.Hooks.AddNames(s.clusterIP); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.watch(limited); err != nil {
		return err
	}
	opened, err := s.dialUntil(limited)
	if err != nil {
		return err
	}
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	s.channel.Go(func() { s.hold(held, opened) })
	return nil
}

// Host returns the DNS name of the Service, for which the certificates of the Hook server are
// valid.
func (s *Service) Host() string { return serviceName + "." + s.namespace + ".svc" }

// HookAddress returns the address of the Service for Hooks without a Fault of the connection:
// its cluster IP and port.
func (s *Service) HookAddress() hook.Address {
	return hook.Address{Host: s.clusterIP, Port: servicePortOf(0), CABundle: s.options.Hooks.Address().CABundle}
}

// Namespace returns the namespace of all objects.
func (s *Service) Namespace() string { return s.namespace }

// ClientConfig returns the clientConfig of a webhook or conversion for an endpoint of the Hook
// server, through the Service.
func (s *Service) ClientConfig(endpoint hook.ClientConfig) map[string]any {
	return map[string]any{
		"service": map[string]any{
			"namespace": s.namespace, "name": serviceName, "path": endpoint.Path, "port": int64(s.servicePort(endpoint.Port)),
		},
		"caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle),
	}
}

// servicePort returns the port of the Service for a port of the Hook server. For any other
// port, it is one that the Service does not have, as with the Fault Refused.
func (s *Service) servicePort(port int) int {
	for i, listener := range s.listeners {
		if listener.Port == port {
			return servicePortOf(i)
		}
	}
	return servicePortOf(len(s.listeners))
}

// noteLost notes how many connections the relay lost.
func (s *Service) noteLost(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if count != s.atRelay {
		s.atRelay = count
		s.changes++
	}
}

// LostConnections returns a number that grows when the relay, or the way from it to the Hook server, loses
// connections to the Hooks, because other clients make too many.
func (s *Service) LostConnections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// dialHooks dials the listener of the Hook server for a connection to a port of the pod.
func (s *Service) dialHooks(ctx context.Context, port int) (*net.TCPConn, error) {
	at := port - firstPodPort
	if at < 0 || at >= len(s.listeners) {
		return nil, fmt.Errorf("dial hook server: the relay sent port %d; want a port from %d to %d", port, firstPodPort, firstPodPort+len(s.listeners)-1)
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", s.listeners[at].Address)
	if err != nil { // such as too many open files
		s.mu.Lock()
		s.changes++
		s.mu.Unlock()
		return nil, fmt.Errorf("dial hook server: %w", err)
	}
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("dial hook server: got a connection of type %T, want TCP", connection), connection.Close())
	}
	return tcp, nil
}

// Err returns nil while the API server can reach the Hook server, or while a broken channel is
// being opened again. If that failed, the error is a framework.ErrNoResponse.
func (s *Service) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close closes the channel, removes the namespace and waits until it is gone. The Hook server
// stays open.
func (s *Service) Close(ctx context.Context) error {
	s.end()
	s.channel.Wait()
	err := s.remove(ctx)
	if err == nil {
		err = s.waitUntilGone(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove hooks from the cluster: %w", err)
	}
	return nil
}
