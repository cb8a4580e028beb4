package providers

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/relay"
)

// RelayPrefix is the first part of the name of the namespace of transport service. The ID of the run follows.
const RelayPrefix = "admissiontest-hooks-"

// inClusterManifest is the template of the objects.
//
//go:embed incluster.yaml
var inClusterManifest string

// Ports of the pod. The listeners have firstPodPort and the ports after it, in their order.
// No port needs a privilege.
const (
	controlPort  = 7400
	healthPort   = 7401
	firstPodPort = 8443
)

// The limits of transport service: from the creation of the pod to an open channel, for the removal of the namespace,
// for which the namespace controller takes some seconds, and between two reads of the state of the cluster.
const (
	relayStartLimit = time.Minute
	relayEndLimit   = 90 * time.Second
	relayInterval   = 100 * time.Millisecond
)

// inCluster is a Service and a pod that forward the calls of an API server to a Hook server of this process, which the
// API server need not reach. The pod (internal/relay) forwards each connection unchanged, through one channel
// (pods/portforward). TLS ends in the Hook server: the pod has no key, no access to the API and no state. See
// docs/adr/0003-hooks-inside-the-cluster.md.
//
// If the channel breaks, err has the reason. The channel is not opened again: what ran meanwhile says nothing.
type inCluster struct {
	config    *rest.Config
	run       string
	image     string
	sources   []netip.Prefix // that may connect to the pod; none means all
	hooks     *hook.Server
	listeners []hook.Listener
	namespace string
	token     string
	clusterIP string

	core    corev1client.CoreV1Interface
	dynamic dynamic.Interface

	end     context.CancelFunc // of the channel
	serving sync.WaitGroup     // the goroutine of the channel

	mu   sync.Mutex
	lost error // see err
}

// newInCluster returns an inCluster that is not started.
func newInCluster(config *rest.Config, run, image string, hooks *hook.Server) (*inCluster, error) {
	limited := apiserver.Limited(config)
	limited.QPS = -1 // the API server has its own limits (API Priority and Fairness)
	limited.WarningHandler = rest.NoWarnings{}
	random := make([]byte, relay.TokenSize/2)
	_, err := rand.Read(random)
	s := &inCluster{config: config, run: run, image: image, hooks: hooks, namespace: RelayPrefix + run, token: hex.EncodeToString(random), end: func() {}}
	if err == nil {
		s.core, err = corev1client.NewForConfig(limited)
	}
	if err == nil {
		s.dynamic, err = dynamic.NewForConfig(limited)
	}
	if err == nil {
		s.listeners, err = hooks.Listeners()
	}
	if err != nil {
		return nil, fmt.Errorf("start hooks in the cluster: use API server at %s: %w", config.Host, err)
	}
	return s, nil
}

// start creates the objects and returns when the channel is open. It fails if rights are missing (before it creates
// anything), the image cannot be pulled, or the pod cannot be scheduled or ends. The error comes within a minute, and
// the namespace is removed.
func (s *inCluster) start(ctx context.Context) error {
	err := s.checkRights(ctx)
	if err == nil {
		if err = s.open(ctx); err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}
	if err != nil {
		return fmt.Errorf("start hooks in the cluster: %w", err)
	}
	return nil
}

func (s *inCluster) open(ctx context.Context) error {
	if err := s.create(ctx); err != nil {
		return err
	}
	if err := s.hooks.AddNames(s.host(), s.clusterIP); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, relayStartLimit)
	defer cancel()
	if err := s.await(limited); err != nil {
		return err
	}
	channel, err := s.dial(limited)
	if err != nil {
		return fmt.Errorf("open the channel to the pod: %w", err)
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	s.serving.Go(func() {
		broke := relay.Serve(serving, channel, s.dialHooks)
		if serving.Err() == nil {
			s.mu.Lock()
			s.lost = fmt.Errorf("hooks in the cluster: %w: the channel to the pod in namespace %s: %w", framework.ErrNoResponse, s.namespace, broke)
			s.mu.Unlock()
		}
	})
	return nil
}

// checkRights returns an error that names the missing rights. If the API server does not
// answer reviews, the rights are assumed to be there.
func (s *inCluster) checkRights(ctx context.Context) error {
	needed := []apiserver.Right{
		{Verb: "create", Resource: "namespaces"}, {Verb: "get", Resource: "namespaces"}, {Verb: "delete", Resource: "namespaces"},
		{Verb: "create", Resource: "serviceaccounts"}, {Verb: "create", Resource: "secrets"}, {Verb: "create", Resource: "services"},
		{Verb: "create", Resource: "pods"}, {Verb: "get", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "portforward"},
	}
	if len(s.sources) > 0 {
		needed = append(needed, apiserver.Right{Verb: "create", Group: "networking.k8s.io", Resource: "networkpolicies"})
	}
	missing, err := apiserver.MissingRights(ctx, s.config, needed)
	if err != nil || len(missing) == 0 {
		return err
	}
	names := make([]string, len(missing))
	for i, right := range missing {
		names[i] = right.String()
	}
	return fmt.Errorf("rights are missing: %s; nothing was created", strings.Join(names, ", "))
}

// servicePort is a port of the Service for a listener of the Hook server.
type servicePort struct {
	Name         string
	Service, Pod int
	Listens      bool // false for the Fault that is a port on which nothing listens
}

// ports returns the ports, in the order of the listeners. The first listener, which has no Fault, has port 443: the
// default of a clientConfig.
func (s *inCluster) ports() []servicePort {
	all := make([]servicePort, len(s.listeners))
	for i, listener := range s.listeners {
		all[i] = servicePort{Name: string(listener.Fault), Service: firstPodPort + i, Pod: firstPodPort + i, Listens: listener.Fault != hook.Refused}
	}
	all[0].Name, all[0].Service = "hooks", 443
	return all
}

// objects returns what is created, in this order.
func (s *inCluster) objects() ([]*unstructured.Unstructured, error) {
	parsed, err := template.New("").Parse(inClusterManifest)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, map[string]any{
		"Namespace": s.namespace, "Run": s.run, "Image": s.image, "Token": s.token, "Sources": s.sources,
		"Ports": s.ports(), "ControlPort": controlPort, "HealthPort": healthPort,
	}); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text.String(), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[apiserver.RunLabel], labels["app.kubernetes.io/name"] = s.run, "admissiontest-hooks"
		object.SetLabels(labels)
		all = append(all, object)
	}
	return all, nil
}

// create creates the objects.
func (s *inCluster) create(ctx context.Context) error {
	objects, err := s.objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		created := dynamic.ResourceInterface(s.dynamic.Resource(resource))
		if object.GetKind() != "Namespace" {
			created = s.dynamic.Resource(resource).Namespace(s.namespace)
		}
		made, err := created.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() == "Service" {
			s.clusterIP, _, _ = unstructured.NestedString(made.Object, "spec", "clusterIP")
		}
	}
	return nil
}

// await waits until the pod is ready. The error says why it is not.
func (s *inCluster) await(ctx context.Context) error {
	reason := "it is not ready"
	err := wait.PollUntilContextCancel(ctx, relayInterval, true, func(ctx context.Context) (bool, error) {
		pod, err := s.core.Pods(s.namespace).Get(ctx, "hooks", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		found, final := obstacle(pod)
		if found != "" {
			reason = found
		}
		if final {
			return false, errors.New(reason)
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for the pod: %s (%w)", reason, context.Cause(ctx))
	}
	return err
}

// obstacle returns why a pod does not work, or "". One that is not final can disappear.
func obstacle(pod *corev1.Pod) (reason string, final bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			reason = "pod hooks cannot be scheduled: " + condition.Message
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil && waiting.Message != "" {
			final = waiting.Reason == "ErrImageNeverPull" || waiting.Reason == "InvalidImageName"
			reason = fmt.Sprintf("pod hooks cannot start image %s: %s: %s", container.Image, waiting.Reason, waiting.Message)
		}
		if ended := container.State.Terminated; ended != nil { // the message is the end of its log
			reason = fmt.Sprintf("pod hooks ended with exit code %d: %s %s", ended.ExitCode, ended.Reason, ended.Message)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace(fmt.Sprintf("pod hooks failed: %s %s %s", pod.Status.Reason, pod.Status.Message, reason)), true
	}
	return reason, final
}

// host returns the DNS name of the Service, for which the certificates of the Hook server are
// valid.
func (s *inCluster) host() string { return "hooks." + s.namespace + ".svc" }

// hookAddress returns the address of the Service for Hooks without a Fault of the connection:
// its cluster IP and port.
func (s *inCluster) hookAddress() hook.Address {
	return hook.Address{Host: s.clusterIP, Port: s.ports()[0].Service, CABundle: s.hooks.Address().CABundle}
}

// clientConfig returns the clientConfig of a webhook or conversion for an endpoint of the Hook
// server, through the Service. For a port that is none of a listener, it is one that the Service does not have.
func (s *inCluster) clientConfig(endpoint hook.ClientConfig) map[string]any {
	number := firstPodPort + len(s.listeners)
	for i, one := range s.ports() {
		if s.listeners[i].Port == endpoint.Port {
			number = one.Service
		}
	}
	return map[string]any{
		"service":  map[string]any{"namespace": s.namespace, "name": "hooks", "path": endpoint.Path, "port": int64(number)},
		"caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle),
	}
}

// dialHooks dials the listener of the Hook server for a connection to a port of the pod.
func (s *inCluster) dialHooks(ctx context.Context, port int) (*net.TCPConn, error) {
	at := port - firstPodPort
	if at < 0 || at >= len(s.listeners) {
		return nil, fmt.Errorf("dial hook server: the relay sent port %d; want a port from %d to %d", port, firstPodPort, firstPodPort+len(s.listeners)-1)
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", s.listeners[at].Address)
	if err != nil { // such as too many open files
		return nil, fmt.Errorf("dial hook server: %w", err)
	}
	return connection.(*net.TCPConn), nil //nolint:forcetypeassert // the network is tcp
}

// err returns nil while the API server can reach the Hook server. Otherwise the error is a framework.ErrNoResponse.
func (s *inCluster) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// close closes the channel, removes the namespace and waits until it is gone. The Hook server
// stays open.
func (s *inCluster) close(ctx context.Context) error {
	s.end()
	s.serving.Wait()
	limited, cancel := context.WithTimeout(ctx, relayEndLimit)
	defer cancel()
	err := wait.PollUntilContextCancel(limited, relayInterval, true, func(ctx context.Context) (bool, error) {
		found, err := s.core.Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && found.Labels[apiserver.RunLabel] != s.run:
			return true, nil
		case err != nil || found.DeletionTimestamp != nil:
			return false, err
		}
		err = s.core.Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			err = nil
		}
		return false, err
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("remove hooks from the cluster: namespace %s is still there after %s: an object in it has a finalizer, or the namespace controller does not work; `admissiontest cleanup --run %s` removes it later", s.namespace, relayEndLimit, s.run)
	case err != nil:
		return fmt.Errorf("remove hooks from the cluster: %w", err)
	}
	return nil
}
