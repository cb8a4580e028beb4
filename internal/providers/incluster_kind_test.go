package providers

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

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
