package relay

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// fakeAPI is an API server that denies the named rights and records the requests. It stores
// no objects.
type fakeAPI struct {
	denied  []string
	answers map[string]any // by "METHOD PATH"
	asked   chan string
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb, Group, Resource, Subresource string }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		at := review.Spec.ResourceAttributes
		name := apiserver.Right{Verb: at.Verb, Group: at.Group, Resource: at.Resource, Subresource: at.Subresource}.String()
		answer(w, http.StatusCreated, map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"status": map[string]any{"allowed": !slices.Contains(f.denied, name)},
		})
		return
	}
	if r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" { // which this server does not answer
		f.asked <- r.Method + " " + r.URL.Path
	}
	if body, ok := f.answers[r.Method+" "+r.URL.Path]; ok {
		answer(w, http.StatusOK, body)
		return
	}
	answer(w, http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "not here"})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fakeAPI) options(t *testing.T) Options {
	t.Helper()
	f.asked = make(chan string, 100)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return Options{
		Config: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		Run:    "r1", Image: "example.com/hooks:v1", Hooks: hooks(t),
	}
}

func hooks(t *testing.T) *hook.Server {
	t.Helper()
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// If one right is missing, the error names it and nothing is created.
func TestEachRightIsNamed(t *testing.T) {
	sources := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	for _, missing := range (&Service{options: Options{Sources: sources}}).rights() {
		t.Run(missing.String(), func(t *testing.T) {
			fake := &fakeAPI{denied: []string{missing.String()}}
			options := fake.options(t)
			options.Sources = sources
			_, err := Start(t.Context(), options)
			want := "rights are missing in namespace admissiontest-hooks-r1: " + missing.String() + "; nothing was created"
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if len(fake.asked) > 0 {
				t.Errorf("asked %s", <-fake.asked)
			}
		})
	}
}

// A NetworkPolicy admits the sources alone, and needs its right only if there are any.
func TestNetworkPolicy(t *testing.T) {
	sources := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("fd00::/64")}
	for _, from := range [][]netip.Prefix{nil, sources} {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			var created *networkingv1.NetworkPolicy
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				created = &networkingv1.NetworkPolicy{}
				if err := json.NewDecoder(r.Body).Decode(created); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(created)
			}))
			t.Cleanup(server.Close)
			s, err := prepare(Options{
				Config: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
				Run:    "r1", Image: "i", Hooks: hooks(t), Sources: from,
			})
			if err == nil {
				err = s.createNetworkPolicy(t.Context(), metav1.ObjectMeta{Name: "hooks"})
			}
			if err != nil {
				t.Fatal(err)
			}
			if from == nil {
				if created != nil {
					t.Errorf("without sources: got %v, want no NetworkPolicy", created)
				}
				return
			}
			var blocks []string
			for _, peer := range created.Spec.Ingress[0].From {
				blocks = append(blocks, peer.IPBlock.CIDR)
			}
			if !slices.Equal(blocks, []string{"10.0.0.1/32", "fd00::/64"}) || created.Spec.PodSelector.MatchLabels[apiserver.RunLabel] != "r1" {
				t.Errorf("got %v for %v, want the sources and the pod", blocks, created.Spec.PodSelector)
			}
			if health := created.Spec.Ingress[1]; len(health.From) > 0 || len(health.Ports) != 1 || health.Ports[0].Port.IntValue() != healthPort {
				t.Errorf("got %v, want only the port for probes open for all", health)
			}
		})
	}
	fake := &fakeAPI{denied: []string{"create networkpolicies.networking.k8s.io"}}
	if _, err := Start(t.Context(), fake.options(t)); err != nil && strings.Contains(err.Error(), "networkpolicies") {
		t.Errorf("got %v, want no need for the right without sources", err)
	}
}

func TestSomebodyElsesNamespace(t *testing.T) {
	fake := &fakeAPI{answers: map[string]any{}}
	options := fake.options(t)
	const path = "/api/v1/namespaces/admissiontest-hooks-r1"
	fake.answers["GET "+path] = corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "admissiontest-hooks-r1"}}
	conflict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces" {
			answer(w, http.StatusConflict, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict})
			return
		}
		fake.ServeHTTP(w, r)
	}))
	defer conflict.Close()
	options.Config.Host = conflict.URL
	_, err := Start(t.Context(), options)
	if err == nil || !strings.Contains(err.Error(), "not the namespace of an earlier run") {
		t.Errorf("got %v, want an error that it is not the namespace of an earlier run", err)
	}
	close(fake.asked)
	for asked := range fake.asked {
		if strings.HasPrefix(asked, "DELETE") {
			t.Errorf("asked %s", asked)
		}
	}
}

func TestOptions(t *testing.T) {
	good := Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Run: "r1", Image: "i", Hooks: hooks(t)}
	for field, spoil := range map[string]func(*Options){
		"Config": func(o *Options) { o.Config = nil }, "Run": func(o *Options) { o.Run = "A B" },
		"Image": func(o *Options) { o.Image = "" }, "Hooks": func(o *Options) { o.Hooks = nil },
	} {
		t.Run(field, func(t *testing.T) {
			bad := good
			spoil(&bad)
			if _, err := Start(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "Options."+field) {
				t.Errorf("got %v, want Options.%s in it", err, field)
			}
		})
	}
	if _, err := Start(t.Context(), good); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the address, without waiting for it", err)
	}
}

func TestClientConfig(t *testing.T) {
	server := hooks(t)
	s, err := prepare(Options{Config: &rest.Config{}, Run: "r1", Image: "i", Hooks: server})
	if err != nil {
		t.Fatal(err)
	}
	if s.listeners, err = server.Listeners(); err != nil {
		t.Fatal(err)
	}
	ports := map[int64]bool{}
	exposed := s.service(metav1.ObjectMeta{}).Spec.Ports
	container := s.container()
	for i, listener := range s.listeners {
		endpoint, err := server.Register(hook.Hook{
			Owner: "o", Configuration: "c", Webhook: "w" + string(listener.Fault), Phase: framework.Mutating,
			Script: hook.Script{Replies: []hook.Reply{{Fault: listener.Fault}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := s.ClientConfig(endpoint)
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
		listens := slices.Contains(container.Args, ":"+exposed[i].TargetPort.String())
		if listens == (listener.Fault == hook.Refused) {
			t.Errorf("fault %q: the relay listens: %t", listener.Fault, listens)
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
	s, err := prepare(Options{Config: &rest.Config{}, Run: "r1", Image: "i", Hooks: hooks(t)})
	if err != nil {
		t.Fatal(err)
	}
	deployment := s.deployment(metav1.ObjectMeta{})
	pod, container := deployment.Spec.Template.Spec, s.container()
	for what, good := range map[string]bool{
		"no token of the API":      !*pod.AutomountServiceAccountToken,
		"not root":                 *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
		"seccomp":                  pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"nothing of the host":      !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
		"read-only root":           *container.SecurityContext.ReadOnlyRootFilesystem,
		"no escalation":            !*container.SecurityContext.AllowPrivilegeEscalation,
		"no capability":            slices.Equal(container.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"probes":                   container.ReadinessProbe != nil && container.LivenessProbe != nil,
		"no token in the manifest": !strings.Contains(fmt.Sprint(deployment), s.token),
		"label of the run":         deployment.Spec.Template.Labels[apiserver.RunLabel] == "r1",
	} {
		if !good {
			t.Errorf("the pod template lacks: %s", what)
		}
	}
}

func TestObstacles(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Image: "example.com/hooks:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	unschedulable := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}}
	crashing := waiting("CrashLoopBackOff", "back-off")
	crashing.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error", Message: "listen: in use"}
	tests := map[string]struct {
		status corev1.PodStatus
		says   []string // none: no obstacle
		final  bool
	}{
		"nothing known":   {corev1.PodStatus{}, nil, false},
		"being created":   {waiting("ContainerCreating", ""), nil, false},
		"not scheduled":   {unschedulable, []string{"cannot be scheduled", "Insufficient cpu"}, false},
		"pull":            {waiting("ErrImagePull", "manifest unknown"), []string{"example.com/hooks:v1", "cannot be pulled", "manifest unknown"}, false},
		"pull again":      {waiting("ImagePullBackOff", "x"), []string{"cannot be pulled"}, false},
		"never":           {waiting("ErrImageNeverPull", "not present"), []string{"cannot be used", "not present"}, true},
		"bad name":        {waiting("InvalidImageName", "bad"), []string{"InvalidImageName"}, true},
		"no such secret":  {waiting("CreateContainerConfigError", "secret"), []string{"cannot start"}, false},
		"crashes":         {crashing, []string{"crashes", "exit code 7", "listen: in use"}, true},
		"evicted":         {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk"}, []string{"Evicted", "disk"}, true},
		"ready after all": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := obstacleOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hooks-1"}, Status: test.status})
			if (got.reason == "") != (test.says == nil) || got.final != test.final {
				t.Errorf("got %+v", got)
			}
			for _, part := range test.says {
				if !strings.Contains(got.reason, part) {
					t.Errorf("got %q, want %q in it", got.reason, part)
				}
			}
		})
	}
}

// If a websocket is refused, SPDY is tried.
func TestFallsBackToSPDY(t *testing.T) {
	fake := &fakeAPI{}
	s, err := prepare(fake.options(t))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	if _, err := s.dial(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "pod p") {
		t.Errorf("got %v, want the pod in it", err)
	}
	close(fake.asked)
	var asked []string
	for one := range fake.asked {
		asked = append(asked, one)
	}
	const path = "/api/v1/namespaces/n/pods/p/portforward"
	if diff := cmp.Diff([]string{"GET " + path, "POST " + path}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
