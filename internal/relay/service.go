package relay

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"
	"time"

	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/relay/tunnel"
)

// startLimit bounds the time from the creation of the pod to an open channel.
const startLimit = time.Minute

// closeLimit bounds the removal after a Start that failed.
const closeLimit = 30 * time.Second

// Options say where and what. Config, Run, Image and Hooks are required.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Run is the run's ID, as in cluster.Options.
	Run string
	// Image is the reference of an image that package image made.
	Image string
	// PullPolicy is when nodes pull the image. Empty means IfNotPresent, by which an
	// image that was loaded onto the nodes is found.
	PullPolicy corev1.PullPolicy
	// Hooks answers the calls. Its certificates become valid for the Service's name.
	Hooks *hook.Server
	// Progress receives one line for each longer thing that is done. Nil discards
	// them.
	Progress func(string)
}

// Service is a pod and a Service that lead to a Hook server. Use Start to make one.
// Its methods may be called by many goroutines at once.
type Service struct {
	options   Options
	namespace string
	token     string
	clusterIP string
	listeners []hook.Listener

	core          corev1client.CoreV1Interface
	apps          appsv1.AppsV1Interface
	authorization authorizationv1.AuthorizationV1Interface

	grace   time.Duration // see watch
	end     context.CancelFunc
	channel sync.WaitGroup // the goroutine that holds the channel open

	mu   sync.Mutex
	open interface{ Close() error } // the channel, while there is one
	lost error
}

// Start creates what is needed in a namespace of its own and returns when a channel
// is open. A namespace that an earlier run of the same ID left is removed first.
//
// The error says what is wrong: rights that are missing (before anything is
// created), an image that cannot be pulled, a pod that cannot be scheduled or does
// not stay up. It comes within a minute, and what was created is removed.
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

// prepare checks the options and makes the clients.
func prepare(options Options) (*Service, error) {
	switch {
	case options.Config == nil:
		return nil, errors.New("Options.Config is nil: give a rest.Config")
	case options.Hooks == nil:
		return nil, errors.New("Options.Hooks is nil: give a hook.Server")
	case options.Image == "":
		return nil, errors.New("Options.Image is empty: give the reference of an image; `admissiontest image` makes one")
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
	config := rest.CopyConfig(options.Config)
	config.QPS = -1 // the API server's own fairness is limit enough
	config.WarningHandler = rest.NoWarnings{}
	var errs [3]error
	s.core, errs[0] = corev1client.NewForConfig(config)
	s.apps, errs[1] = appsv1.NewForConfig(config)
	s.authorization, errs[2] = authorizationv1.NewForConfig(config)
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
	s.options.Progress("starting the Hooks' pod in namespace " + s.namespace)
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

// Host is the name by which the API server calls the Service, and for which the
// Hook server's certificates are valid.
func (s *Service) Host() string { return serviceName + "." + s.namespace + ".svc" }

// HookAddress returns how the API server reaches the Hook server by address: the
// cluster IP and the port of the Service for Hooks without a Fault of the connection.
func (s *Service) HookAddress() hook.Address {
	return hook.Address{Host: s.clusterIP, Port: servicePortOf(0), CABundle: s.options.Hooks.Address().CABundle}
}

// Namespace is where everything is.
func (s *Service) Namespace() string { return s.namespace }

// ClientConfig is the clientConfig of a webhook, or of a conversion, by which the
// API server reaches the Endpoint through the Service.
func (s *Service) ClientConfig(endpoint hook.ClientConfig) map[string]any {
	return map[string]any{
		"service": map[string]any{
			"namespace": s.namespace, "name": serviceName, "path": endpoint.Path, "port": int64(s.servicePort(endpoint.Port)),
		},
		"caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle),
	}
}

// servicePort is the port of the Service that leads to a port of the Hook server.
// One that is not the Hook server's leads nowhere, like that of Refused.
func (s *Service) servicePort(port int) int {
	for i, listener := range s.listeners {
		if listener.Port == port {
			return servicePortOf(i)
		}
	}
	return servicePortOf(len(s.listeners))
}

// dialHooks reaches the place of the Hook server for a connection that came to the
// pod by a port.
func (s *Service) dialHooks(ctx context.Context, port int) (*net.TCPConn, error) {
	at := port - firstPodPort
	if at < 0 || at >= len(s.listeners) {
		return nil, fmt.Errorf("dial hook server: the relay names port %d, which it was not told to listen on", port)
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", s.listeners[at].Address)
	if err != nil {
		return nil, fmt.Errorf("dial hook server: %w", err)
	}
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("dial hook server: got a connection of type %T, want TCP", connection), connection.Close())
	}
	return tcp, nil
}

// Err is nil while calls can arrive, which includes a channel that is being dialled
// anew. When that has failed for good, it wraps framework.ErrNoResponse.
func (s *Service) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close ends the channel, removes everything from the cluster, and waits until the
// namespace is gone. The Hook server is left as it is.
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
