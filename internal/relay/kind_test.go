package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/httpstream"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/relay/tunnel"
)

// kubeconfigVariable has the path of the kubeconfig of a kind cluster of this machine, for the
// tests of this file. If it is not set, they are skipped.
const kubeconfigVariable = "ADMISSIONTEST_KIND_KUBECONFIG"

func realConfig(t testing.TB) *rest.Config {
	t.Helper()
	path := os.Getenv(kubeconfigVariable)
	if path == "" {
		t.Skipf("%s is not set: it needs a kind cluster on this machine", kubeconfigVariable)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	// Of the exempt priority level, so that 200 requests are served at once.
	config.Impersonate = rest.ImpersonationConfig{UserName: "admissiontest-admin", Groups: []string{"system:masters"}}
	return config
}

// loaded builds the image, imports it into all nodes and returns its tag.
func loaded(t testing.TB, config *rest.Config) string {
	t.Helper()
	built, err := BuildImage(t.Context(), ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := ImageTag(built)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hooks.tar")
	if err := WriteImage(built, tag, path); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	probe, err := prepare(Options{Config: config, Run: "load", Image: tag, Hooks: &hook.Server{}})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := probe.core.Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		command := exec.CommandContext(t.Context(), "docker", "exec", "-i", node.Name, "ctr", "--namespace=k8s.io", "images", "import", "-")
		command.Stdin = bytes.NewReader(archive)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("load image onto node %s: %v\n%s", node.Name, err, out)
		}
	}
	return tag
}

// world is a Sandbox whose webhooks are called through a Service.
type world struct {
	*apiserver.Sandbox
	target  *apiserver.Target
	through *Service
	id      string
	calls   *hook.Recording // since install
}

func newWorld(t testing.TB) *world {
	t.Helper()
	config := realConfig(t)
	tag := loaded(t, config)
	hooks, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := apiserver.NewRunID()
	began := time.Now()
	through, err := Start(t.Context(), Options{Config: config, Run: run, Image: tag, Hooks: hooks, Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	on, err := apiserver.New(t.Context(), apiserver.Options{Config: config, Run: run, Hooks: hooks, ClientConfig: through.ClientConfig, HooksErr: through.Err})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{target: on, through: through, id: "at-" + run + "-001"}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(on.Close(ctx), through.Close(ctx), hooks.Close()); err != nil {
			t.Error(err)
		}
	})
	w.Sandbox = sandbox(t, on, w.id)
	return w
}

func sandbox(t testing.TB, on *apiserver.Target, id string) *apiserver.Sandbox {
	t.Helper()
	// Controllers create a ConfigMap in every namespace.
	made, err := on.NewSandbox(t.Context(), apiserver.SandboxOptions{ID: id, Users: func(user string) bool { return !strings.HasPrefix(user, "system:") }})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// install installs a validating webhook with a reply, and waits until it is effective.
func (w *world) install(t testing.TB, name string, reply hook.Reply) {
	t.Helper()
	webhook := name + ".example.com"
	configuration := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": webhook, "timeoutSeconds": int64(20),
			"rules": []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}},
		}},
	}
	w.calls = w.Record()
	if err := w.Install(t.Context(), configuration, map[string]hook.Script{webhook: {Replies: []hook.Reply{reply}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.target.WaitUntilEffective(t.Context(), []map[string]any{configuration}); err != nil {
		t.Fatal(err)
	}
}

// call sends a dry-run create of a ConfigMap.
func (w *world) call(t testing.TB, name string) framework.Result {
	t.Helper()
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.id},
	}
	result, err := w.Do(t.Context(), framework.Request{
		Verb: framework.VerbCreate, Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: w.id, Name: name, Object: object, DryRun: true,
	})
	if err != nil {
		t.Error(err)
	}
	return result
}

func TestOnKind(t *testing.T) {
	w := newWorld(t)
	t.Run("recorded", func(t *testing.T) {
		w.install(t, "a", hook.Reply{Warnings: []string{"through the Service"}})
		if result := w.call(t, "one"); !result.Allowed() || len(result.Warnings) != 1 {
			t.Errorf("got %v with warnings %q, want one", result.Status, result.Warnings)
		}
		calls := w.calls.Calls()
		if len(calls) != 1 || calls[0].Header.Get("User-Agent") == "" || !strings.Contains(calls[0].Path, w.id) {
			t.Errorf("got %d calls, want one with its header and path", len(calls))
		}
		w.uninstall(t)
	})
	for fault, want := range map[hook.Fault]string{
		hook.TLSExpired: "certificate has expired", hook.TLSWrongName: "elsewhere.invalid", hook.TLSWrongCA: "unknown authority",
		hook.Refused: "connection refused", hook.Reset: "connection reset by peer", hook.HTTP500: "an error on the server", hook.Empty: "0-length response",
	} {
		t.Run(string(fault), func(t *testing.T) {
			w.install(t, "a", hook.Reply{Fault: fault})
			result := w.call(t, "one")
			t.Log(result.Status.Message)
			if result.Allowed() || !strings.Contains(result.Status.Message, want) {
				t.Errorf("got %d %s, want %q", result.Status.Code, result.Status.Message, want)
			}
			w.uninstall(t)
		})
	}
	t.Run("200 at once", func(t *testing.T) {
		const crowd = 200
		w.install(t, "a", hook.Reply{Barrier: "crowd", BarrierSize: crowd})
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() {
				if result := w.call(t, fmt.Sprintf("c%d", i)); !result.Allowed() {
					t.Errorf("call %d: %s", i, result.Status.Message)
				}
			})
		}
		all.Wait()
		if calls := w.calls.Calls(); len(calls) != crowd {
			t.Errorf("got %d calls, want %d", len(calls), crowd)
		}
		w.uninstall(t)
	})
	t.Run("channel is cut", func(t *testing.T) {
		w.install(t, "a", hook.Reply{Delay: hook.Duration(time.Second), Warnings: []string{"late"}})
		var under sync.WaitGroup
		under.Go(func() {
			if result := w.call(t, "under-way"); result.Allowed() {
				t.Error("the call under way was answered though its channel was cut")
			}
		})
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			return len(w.calls.Calls()) == 1, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.through.cut()
		under.Wait()
		// The API server now knows that this connection is lost, but perhaps not for another.
		err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
			result := w.call(t, "after")
			return result.Allowed() && len(result.Warnings) == 1, nil
		})
		if err != nil {
			t.Errorf("no call arrives after the channel was cut: %v", err)
		}
		if err := w.through.Err(); err != nil {
			t.Error(err)
		}
		w.uninstall(t)
	})
	t.Run("pod is replaced", func(t *testing.T) {
		w.install(t, "a", hook.Reply{})
		pod, err := w.through.pod(t.Context())
		if err != nil || pod == nil {
			t.Fatal(pod, err)
		}
		if err := w.through.core.Pods(w.through.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			found, err := w.through.pod(t.Context())
			if err != nil || found == nil || found.Name == pod.Name || !ready(found) {
				return false, err
			}
			result := w.call(t, "one")
			return result.Allowed(), nil
		})
		if err != nil {
			t.Errorf("calls do not arrive at the replacement of the pod: %v", err)
		}
		w.uninstall(t)
	})
}

// SPDY works for an API server without websockets.
func TestSPDYOnKind(t *testing.T) {
	w := newWorld(t)
	pod, err := w.through.pod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newer, older, err := w.through.dialers(pod)
	if err != nil {
		t.Fatal(err)
	}
	for name, dialer := range map[string]httpstream.Dialer{"websocket": newer, "SPDY": older} {
		connection, _, err := dialer.Dial(constants.PortForwardV1Name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		channel, err := forward(connection)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := tunnel.Greet(t.Context(), channel, w.through.token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		channel.Close()
	}
}

// uninstall removes what install installed.
func (w *world) uninstall(t testing.TB) {
	t.Helper()
	if err := w.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// If no channel can be opened again, Err returns the reason.
func TestLostOnKind(t *testing.T) {
	w := newWorld(t)
	w.through.token = strings.Repeat("0", len(w.through.token))
	w.through.cut()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, redialLimit, true, func(context.Context) (bool, error) {
		return w.through.Err() != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.target.Alive(t.Context()); !errors.Is(err, framework.ErrNoResponse) || !strings.Contains(err.Error(), "refuses the token") {
		t.Errorf("got %v, want %v and the refusal of the token", err, framework.ErrNoResponse)
	}
	t.Log(w.through.Err())
}

// A Start that cannot work returns the reason and leaves nothing.
func TestObstaclesOnKind(t *testing.T) {
	config := realConfig(t)
	tag := loaded(t, config)
	stranger := rest.CopyConfig(config)
	stranger.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	for name, test := range map[string]struct {
		change func(*Options)
		says   []string
	}{
		"image not there":  {func(o *Options) { o.Image = "localhost/admissiontest-none:v0" }, []string{"localhost/admissiontest-none:v0", "cannot be pulled"}},
		"image never":      {func(o *Options) { o.Image, o.PullPolicy = "localhost/admissiontest-none:v0", corev1.PullNever }, []string{"ErrImageNeverPull"}},
		"no rights at all": {func(o *Options) { o.Config = stranger }, []string{"create namespaces", "create deployments.apps", "create pods/portforward", "nothing was created"}},
		"earlier run":      {func(*Options) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks, err := hook.Start(t.Context(), hook.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer hooks.Close()
			options := Options{Config: config, Run: apiserver.NewRunID(), Image: tag, Hooks: hooks}
			test.change(&options)
			began := time.Now()
			started, err := Start(t.Context(), options)
			if test.says == nil {
				if err != nil {
					t.Fatal(err)
				}
				started.end() // killed: its namespace stays
				started.channel.Wait()
				again, err := Start(t.Context(), options)
				if err != nil {
					t.Fatal(err)
				}
				if err := again.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			t.Logf("after %s: %v", time.Since(began).Round(time.Millisecond), err)
			for _, part := range test.says {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
			wantGone(t, config, NamespacePrefix+options.Run)
		})
	}
}

// The error for a pod that crashes has the last lines of its log.
func TestCrashLoopOnKind(t *testing.T) {
	s := prepared(t)
	s.token = "short"
	err := s.start(t.Context())
	for _, part := range []string{"crashes", "the token has 5 bytes, want 64"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
	t.Log(err)
}

func TestUnschedulableOnKind(t *testing.T) {
	s := prepared(t)
	cordon(t, s, true)
	t.Cleanup(func() { cordon(t, s, false) })
	err := s.start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot be scheduled: 0/") {
		t.Errorf("got %v, want an error that the pod cannot be scheduled", err)
	}
	t.Log(err)
}

// prepared returns a Service that is not started.
func prepared(t *testing.T) *Service {
	t.Helper()
	config := realConfig(t)
	hooks, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := prepare(Options{Config: config, Run: apiserver.NewRunID(), Image: loaded(t, config), Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(s.Close(ctx), hooks.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// cordon makes all nodes unschedulable, or schedulable again.
func cordon(t *testing.T, s *Service, closed bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	nodes, err := s.core.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed)
		if _, err := s.core.Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// wantGone fails the test if a namespace still exists.
func wantGone(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	probe, err := prepare(Options{Config: config, Run: "probe", Image: "none", Hooks: &hook.Server{}})
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := probe.core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		t.Errorf("namespace %s is still there: %v", namespace, err)
	}
}

// BenchmarkCall is a dry-run request with one webhook, through the Service and,
// where gatewayVariable names an address of this machine that the API server
// reaches, by URL; and one without any webhook.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b)
	calls := func(b *testing.B) {
		w.call(b, "warm")
		for b.Loop() {
			if result := w.call(b, "one"); !result.Allowed() {
				b.Fatal(result.Status.Message)
			}
		}
	}
	b.Run("none", calls)
	w.install(b, "a", hook.Reply{})
	b.Run("service", calls)
	w.uninstall(b)
	address := os.Getenv("ADMISSIONTEST_HOOK_ADDRESS")
	if address == "" {
		return
	}
	direct, err := hook.Start(b.Context(), hook.Options{Address: address + ":0"})
	if err != nil {
		b.Fatal(err)
	}
	defer direct.Close()
	w.target, err = apiserver.New(b.Context(), apiserver.Options{Config: realConfig(b), Run: w.target.RunID() + "u", Hooks: direct})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.target.Close(context.WithoutCancel(b.Context())) }()
	w.id += "u"
	w.Sandbox = sandbox(b, w.target, w.id)
	w.install(b, "a", hook.Reply{})
	b.Run("url", calls)
}
