package harness_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// counting counts namespaces in an event handler, and creates one for each request. It does both
// under one lock.
type counting struct {
	*admission.Handler
	client kubernetes.Interface

	lock     sync.Mutex
	count    int
	panicsAt string
}

func (*counting) ValidateInitialization() error { return nil }

func (c *counting) SetExternalKubeClientSet(client kubernetes.Interface) { c.client = client }

func (c *counting) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	c.lock.Lock()
	defer c.lock.Unlock()
	_, _ = factory.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.count++
		if name := object.(*corev1.Namespace).Name; name == c.panicsAt { //nolint:forcetypeassert // namespaces
			panic("namespace " + name)
		}
	}})
}

func (c *counting) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.GetName()}}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	return err
}

func (c *counting) source() harness.Source {
	c.Handler = admission.NewHandler(admission.Create)
	return harness.FromFactory(func(io.Reader) (admission.Interface, error) { return c, nil })
}

// TestEventHandlers: what the plugin's handlers do for its own writes is done when a request
// returns.
func TestEventHandlers(t *testing.T) {
	plugin := &counting{}
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}}))
	h := harness.New(t, plugin.source(), harness.WithWorld(w))
	if plugin.count != 1 {
		t.Errorf("the plugin has counted %d namespaces after its initialization, want 1", plugin.count)
	}
	h.Do(framework.Create(pod("a"))).MustAllow(t)
	h.Admit(framework.Create(pod("b"))).MustAllow(t)
	if plugin.count != 3 {
		t.Errorf("the plugin has counted %d namespaces after two requests, want 3", plugin.count)
	}
}

// TestEventHandlerPanics: a panic of a handler is one of the plugin.
func TestEventHandlerPanics(t *testing.T) {
	for name, build := range map[string]func(*fakes.World) error{
		"initialization": func(w *fakes.World) error {
			_, err := harness.Build(t, (&counting{panicsAt: "test"}).source(), harness.WithWorld(w))
			return err
		},
		"request": func(w *fakes.World) error {
			h := harness.New(t, (&counting{panicsAt: "a"}).source(), harness.WithWorld(w))
			_, err := h.Run(t.Context(), framework.Create(pod("a")))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakes.NewWorld(t, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}}))
			var panicked *harness.PanicError
			if err := build(w); !errors.As(err, &panicked) {
				t.Fatalf("got %v, want a panic", err)
			}
			mustHave(t, panicked.Error(), "an event handler of the informer of *v1.Namespace panicked at ", "handlers_test.go:", "namespace ")
			if !strings.Contains(panicked.Stack, "SetExternalKubeInformerFactory") {
				t.Errorf("the stack does not have the handler:\n%s", panicked.Stack)
			}
		})
	}
}
