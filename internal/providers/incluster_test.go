package providers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/relay"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// through returns an inCluster of run r1 that is not started.
func through(t *testing.T, config *rest.Config) *inCluster {
	t.Helper()
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	s, err := newInCluster(config, "r1", "example.com/hooks:v1", server)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// object decodes the only object of a kind that an inCluster creates, or returns nil.
func object[T any](t *testing.T, s *inCluster, kind string) *T {
	t.Helper()
	all, err := s.objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.GetLabels()[apiserver.RunLabel] != "r1" {
			t.Errorf("%s has no label of the run", one.GetKind())
		}
		if one.GetKind() == kind {
			typed := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(one.Object, typed, true); err != nil {
				t.Fatal(err)
			}
			return typed
		}
	}
	return nil
}

// An API server accepts the objects, and a Start that fails leaves nothing of them: without a kubelet the pod does not get ready.
func TestObjects(t *testing.T) {
	config := testserver.Config(t)
	s := through(t, config)
	if err := s.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.clusterIP == "" {
		t.Error("the Service has no address")
	}
	found, err := s.core.Namespaces().Get(t.Context(), s.namespace, metav1.GetOptions{})
	if err != nil || found.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("got %v and %v, want Pod Security", found.Labels, err)
	}
	if err := s.core.Namespaces().Delete(t.Context(), s.namespace, metav1.DeleteOptions{}); err != nil { // no controller ends it
		t.Error(err)
	}
	if err := through(t, config).create(t.Context()); err == nil || !strings.Contains(err.Error(), "create Namespace admissiontest-hooks-r1") {
		t.Errorf("got %v, want an error that the namespace is there", err)
	}
}

// If rights are missing, the error names them and nothing is created.
func TestRightsOfService(t *testing.T) {
	stranger := rest.CopyConfig(testserver.Config(t))
	stranger.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	s := through(t, stranger)
	err := s.start(t.Context())
	for _, part := range []string{"create namespaces, ", "create pods/exec, ", "create services, ", "create pods; nothing was created"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
	err = through(t, &rest.Config{Host: "http://127.0.0.1:1"}).checkRights(t.Context())
	if !errors.Is(err, framework.ErrNoResponse) {
		t.Errorf("got %v, want %v", err, framework.ErrNoResponse)
	}
}

// Each Fault of the connection has its own port.
func TestClientConfig(t *testing.T) {
	s := through(t, &rest.Config{})
	ports := map[int64]bool{}
	exposed := object[corev1.Service](t, s, "Service").Spec.Ports
	for i, listener := range s.listeners {
		endpoint, err := s.hooks.Register(hook.Hook{
			Owner: "o", Configuration: "c", Webhook: "w" + string(listener.Fault), Phase: framework.Mutating,
			Script: hook.Script{Replies: []hook.Reply{{Fault: listener.Fault}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := s.clientConfig(endpoint)
		port := got["service"].(map[string]any)["port"].(int64)
		want := map[string]any{
			"service":  map[string]any{"namespace": "admissiontest-hooks-r1", "name": "hooks", "path": endpoint.Path, "port": port},
			"caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fault %q (-want +got):\n%s", listener.Fault, diff)
		}
		if ports[port] || int64(exposed[i].Port) != port || (listener.Fault == hook.NoFault) != (port == 443) {
			t.Errorf("fault %q has port %d, the Service %d", listener.Fault, port, exposed[i].Port)
		}
		ports[port] = true
		if s.ports()[i].Listens == (listener.Fault == hook.Refused) {
			t.Errorf("fault %q: the relay listens: %v", listener.Fault, s.ports()[i])
		}
		connection, err := s.dialHooks(t.Context(), exposed[i].TargetPort.IntValue())
		if (err != nil) != (listener.Fault == hook.Refused) {
			t.Errorf("fault %q: dial: %v", listener.Fault, err)
		}
		if err == nil {
			connection.Close()
		}
	}
	if _, err := s.dialHooks(t.Context(), 22); err == nil {
		t.Error("dialled a port that the relay does not listen on")
	}
}

// The pod has as few privileges as possible.
func TestPodIsHarmless(t *testing.T) {
	s := through(t, &rest.Config{})
	whole := object[corev1.Pod](t, s, "Pod")
	pod, container := whole.Spec, whole.Spec.Containers[0]
	for what, good := range map[string]bool{
		"no token of the API": !*pod.AutomountServiceAccountToken,
		"not root":            *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
		"seccomp":             pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"nothing of the host": !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
		"read-only root":      *container.SecurityContext.ReadOnlyRootFilesystem,
		"no escalation":       !*container.SecurityContext.AllowPrivilegeEscalation,
		"no capability":       slices.Equal(container.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"the program":         slices.Equal(container.Command, []string{entrypointOfRelay}),
	} {
		if !good {
			t.Errorf("the pod lacks: %s", what)
		}
	}
}

func TestObstacles(t *testing.T) {
	waiting := corev1.ContainerStatus{Image: "example.com/hooks:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "manifest unknown"}}}
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error", Message: "listen: in use"}}}
	for want, status := range map[string]corev1.PodStatus{
		"":                                     {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}},
		"3 Insufficient cpu":                   {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "3 Insufficient cpu"}}},
		"exit code 7: listen: in use":          {Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended}},
		"evicted; exit code 7: listen: in use": {Message: "evicted", ContainerStatuses: []corev1.ContainerStatus{ended}},
		"image example.com/hooks:v1: ErrImagePull: manifest unknown": {ContainerStatuses: []corev1.ContainerStatus{waiting}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := obstacle(&corev1.Pod{Status: status}); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// served is an API server whose pod runs a Relay for each exec.
func served(t *testing.T, addresses ...string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol := wsstream.ChannelProtocolConfig{Binary: true, Channels: []wsstream.ChannelType{wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.IgnoreChannel}}
		connection := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": protocol})
		_, streams, err := connection.Open(w, r)
		if err != nil || r.URL.Path != "/api/v1/namespaces/admissiontest-hooks-r1/pods/hooks/exec" || !slices.Equal(r.URL.Query()["command"][:2], []string{entrypointOfRelay, ":8443"}) {
			t.Errorf("got %v for %s", err, r.URL)
			return
		}
		defer connection.Close()
		listening, err := relay.Listen(addresses...)
		if err == nil {
			err = listening.Run(r.Context(), struct {
				io.Reader
				io.WriteCloser
			}{streams[0], streams[1]})
		}
		_, _ = fmt.Fprint(streams[2], err)
		_, _ = fmt.Fprint(streams[3], `{"status": "Failure", "message": "it ended"}`)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// The channel is stdin and stdout of the relay. The error has its stderr.
func TestDial(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if _, err := through(t, served(t, address)).dial(t.Context()); err == nil || !strings.Contains(err.Error(), "it ended") || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want why the relay ended", err)
	}
	listener.Close()
	s := through(t, served(t, address))
	opened, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error)
	go func() {
		served <- relay.Serve(ctx, opened, func(ctx context.Context, _ int) (*net.TCPConn, error) { return s.dialHooks(ctx, firstPodPort) })
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is for another name
	defer client.CloseIdleConnections()
	for range 3 {
		response, err := client.Post("https://"+address, "application/json", bytes.NewReader(make([]byte, 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	end()
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A node that answers the request for a program with a redirect does not get the credentials
// sent elsewhere.
func TestDialersFollowNoRedirect(t *testing.T) {
	asked, elsewhere := 0, 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	_, err := through(t, &rest.Config{Host: server.URL, BearerToken: "token-of-the-operator"}).dial(t.Context())
	if err == nil || asked != 1 || elsewhere != 0 {
		t.Errorf("got %v, %d requests to the API server, %d elsewhere; want an error, 1 and none", err, asked, elsewhere)
	}
}

// onKind returns an inCluster for the kind cluster of this machine whose kubeconfig is in a variable. Without it the
// test is skipped.
func onKind(t *testing.T) *inCluster {
	t.Helper()
	path := os.Getenv("ADMISSIONTEST_KIND_KUBECONFIG")
	if path == "" {
		t.Skip("ADMISSIONTEST_KIND_KUBECONFIG is not set: it needs a kind cluster: make test-kind")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	// Of the exempt priority level, so that 200 requests are served at once.
	config.Impersonate = rest.ImpersonationConfig{UserName: "admissiontest-admin", Groups: []string{"system:masters"}}
	image, err := LoadImage(t.Context(), LocalKind(t.Context(), config), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newInCluster(config, apiserver.NewRunID(), image, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(s.remove(ctx), hooks.Close()); err != nil {
			t.Error(err)
		}
		if _, err := s.core.Namespaces().Get(ctx, s.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("namespace %s is still there: %v", s.namespace, err)
		}
	})
	return s
}

// The relay of the pod answers, and the end of the pod is the end of the channel: what runs then says nothing.
// (TestKindTransports sends calls through it.)
func TestOnKind(t *testing.T) {
	s := onKind(t)
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.core.Pods(s.namespace).Delete(t.Context(), "hooks", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return s.err() != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.err(); !errors.Is(err, framework.ErrNoResponse) || !strings.Contains(err.Error(), "the channel to the pod") {
		t.Errorf("got %v, want %v and the channel", err, framework.ErrNoResponse)
	}
}

// A start that cannot work returns the reason and leaves nothing.
func TestObstaclesOnKind(t *testing.T) {
	s := onKind(t)
	s.image = "localhost/admissiontest-none:v0"
	if err := s.start(t.Context()); err == nil || !strings.Contains(err.Error(), s.image) {
		t.Errorf("got %v, want %q in it", err, s.image)
	}
}
