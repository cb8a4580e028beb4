package providers

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
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

// The listeners have firstPodPort of the pod and the ports after it, in their order. None needs a privilege.
const firstPodPort = 8443

// The limits of transport service: from the creation of the pod to an open channel, and between two looks at the pod.
const (
	relayStartLimit = time.Minute
	relayInterval   = 200 * time.Millisecond
)

// inCluster is a Service and a pod that forward the calls of an API server to a Hook server of this process, which the
// API server need not reach. The pod (internal/relay) forwards each connection unchanged, through one channel
// (pods/exec). TLS ends in the Hook server: the pod has no key, no access to the API and no state. See
// docs/adr/0003-hooks-inside-the-cluster.md.
//
// If the channel breaks, err has the reason. The channel is not opened again: what ran meanwhile says nothing.
type inCluster struct {
	config    *rest.Config
	run       string
	image     string
	hooks     *hook.Server
	listeners []hook.Listener
	namespace string
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
	s := &inCluster{config: config, run: run, image: image, hooks: hooks, namespace: RelayPrefix + run, end: func() {}}
	var err error
	if s.core, err = corev1client.NewForConfig(limited); err == nil {
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
			err = errors.Join(err, s.remove(context.WithoutCancel(ctx)))
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
	s.hooks.AddNames(s.host(), s.clusterIP)
	limited, cancel := context.WithTimeout(ctx, relayStartLimit)
	defer cancel()
	channel, err := s.await(limited)
	if err != nil {
		return err
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
		{Verb: "get", Resource: "pods"}, {Verb: "get", Resource: "pods", Subresource: "exec"}, {Verb: "create", Resource: "pods", Subresource: "exec"},
	}
	objects, err := s.objects()
	for _, object := range objects {
		of, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		needed = append(needed, apiserver.Right{Verb: "create", Group: of.Group, Resource: of.Resource})
	}
	if err != nil {
		return err
	}
	return apiserver.RequireRights(ctx, s.config, needed)
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
		"Namespace": s.namespace, "Run": s.run, "Image": s.image, "Ports": s.ports(),
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

// await waits until the pod is ready and the relay in it answers, and returns the channel. The error says what is missing.
func (s *inCluster) await(ctx context.Context) (channel io.ReadWriteCloser, err error) {
	reason := "it is not ready"
	err = wait.PollUntilContextCancel(ctx, relayInterval, true, func(ctx context.Context) (bool, error) {
		pod, err := s.core.Pods(s.namespace).Get(ctx, "hooks", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool {
			return one.Type == corev1.PodReady && one.Status == corev1.ConditionTrue
		}) {
			if channel, err = s.dial(ctx); err != nil {
				reason = "open the channel: " + err.Error()
			}
			return err == nil, nil
		}
		if found := obstacle(pod); found != "" {
			reason = found
		}
		if pod.Status.Phase == corev1.PodFailed {
			return false, fmt.Errorf("the pod failed: %s", reason)
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("wait for the pod: %s (%w)", reason, context.Cause(ctx))
	}
	return channel, err
}

// obstacle returns what the status of a pod says about why it does not work, or "".
func obstacle(pod *corev1.Pod) string {
	reasons := []string{pod.Status.Message}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			reasons = append(reasons, condition.Message)
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil && waiting.Message != "" {
			reasons = append(reasons, fmt.Sprintf("image %s: %s: %s", container.Image, waiting.Reason, waiting.Message))
		}
		if ended := container.State.Terminated; ended != nil { // the message is the end of its log
			reasons = append(reasons, fmt.Sprintf("exit code %d: %s", ended.ExitCode, ended.Message))
		}
	}
	return strings.Join(slices.DeleteFunc(reasons, func(one string) bool { return one == "" }), "; ")
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

// close closes the channel. The Hook server stays open, and the end of the run removes the namespace.
func (s *inCluster) close() {
	s.end()
	s.serving.Wait()
}

// remove closes the channel and removes the namespace, before there is a target that does it.
func (s *inCluster) remove(ctx context.Context) error {
	s.close()
	_, err := apiserver.Cleanup(ctx, s.config, apiserver.CleanupOptions{Run: s.run})
	return err
}

// channel is stdin and stdout of a program in a pod.
type channel struct {
	*io.PipeReader
	*io.PipeWriter
	end context.CancelFunc
}

// Close ends the program.
func (c channel) Close() error {
	c.end()
	return nil
}

// dial starts the relay in the pod and opens the channel to it, by a websocket.
func (s *inCluster) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	options := &corev1.PodExecOptions{Command: []string{entrypointOfRelay}, Stdin: true, Stdout: true, Stderr: true}
	for _, port := range s.ports() {
		if port.Listens {
			options.Command = append(options.Command, fmt.Sprintf(":%d", port.Pod))
		}
	}
	address := s.core.RESTClient().Post().Resource("pods").Namespace(s.namespace).Name("hooks").SubResource("exec").VersionedParams(options, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(s.config, http.MethodGet, address.String())
	if err != nil {
		return nil, err
	}
	stdin, toPod := io.Pipe()
	fromPod, stdout := io.Pipe()
	// Without a logger: the end of a channel is no error.
	running, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	opened := channel{fromPod, toPod, end}
	go func() {
		defer end()
		var said bytes.Buffer
		err := executor.StreamWithContext(running, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: &said})
		if err == nil {
			err = io.ErrUnexpectedEOF
		} else if running.Err() == nil { // else stderr may still be copied
			err = fmt.Errorf("%w %s", err, strings.TrimSpace(said.String()))
		}
		_ = stdin.CloseWithError(err)
		_ = stdout.CloseWithError(err)
	}()
	if err := relay.Greet(ctx, opened); err != nil {
		return nil, err
	}
	return opened, nil
}
