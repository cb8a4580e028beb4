package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

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

// world is a Sandbox whose webhooks are called through a Service.
type world struct {
	*apiserver.Sandbox
	target  *apiserver.Target
	through *inCluster
	id      string
	calls   *hook.Recording // since install
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := onKind(t)
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	on, err := apiserver.New(t.Context(), apiserver.Options{Config: s.config, Run: s.run, Hooks: s.hooks, ClientConfig: s.clientConfig, HooksErr: s.err})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := on.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	w := &world{target: on, through: s, id: "at-" + s.run + "-001"}
	// Controllers create a ConfigMap in every namespace.
	w.Sandbox, err = on.NewSandbox(t.Context(), apiserver.SandboxOptions{ID: w.id, Users: func(user string) bool { return !strings.HasPrefix(user, "system:") }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// install installs a validating webhook with a reply, and waits until it is effective.
func (w *world) install(t *testing.T, name string, reply hook.Reply) {
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
func (w *world) call(t *testing.T, name string) framework.Result {
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
	w.install(t, "a", hook.Reply{Delay: hook.Duration(time.Second)})
	// With the pod, the channel ends: what runs then says nothing.
	if err := w.through.core.Pods(w.through.namespace).Delete(t.Context(), "hooks", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return w.through.err() != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.target.Alive(t.Context()); !errors.Is(err, framework.ErrNoResponse) || !strings.Contains(err.Error(), "the channel to the pod") {
		t.Errorf("got %v, want %v and the channel", err, framework.ErrNoResponse)
	}
}

// uninstall removes what install installed.
func (w *world) uninstall(t *testing.T) {
	t.Helper()
	if err := w.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
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
