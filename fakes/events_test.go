package fakes_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// recorder is a framework.T that keeps errors and cleanups.
type recorder struct {
	framework.T
	errors   []string
	cleanups []func()
}

func (*recorder) Helper()            {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// end is the end of the test.
func (r *recorder) end() {
	for _, cleanup := range slices.Backward(r.cleanups) {
		cleanup()
	}
}

// handlers adds event handlers for pods.
func handlers(t *testing.T, w *fakes.World, handler cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	added, err := w.Informers().Core().V1().Pods().Informer().AddEventHandler(handler)
	return must(t, added, err)
}

// A plugin may add handlers and write while it holds a lock that its handlers take: on a server
// they run on another goroutine.
func TestHandlersTakeTheLockOfTheWriter(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	var lock sync.Mutex
	var seen []string
	lock.Lock()
	added := handlers(t, w, cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		lock.Lock()
		defer lock.Unlock()
		seen = append(seen, object.(*corev1.Pod).Name) //nolint:forcetypeassert // pods
	}})
	if added.HasSynced() {
		t.Error("the registration has synced before the handler has got the first object")
	}
	made, err := w.Client().CoreV1().Pods("default").Create(t.Context(), pod("b"), metav1.CreateOptions{})
	must(t, made, err)
	if _, ok, err := w.Informers().Core().V1().Pods().Informer().GetStore().GetByKey("default/b"); !ok || err != nil {
		t.Errorf("the cache does not have what was just written: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.WaitHandlers(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "informer of *v1.Pod") {
		t.Errorf("got %v from WaitHandlers, want that the handler of pods has not returned", err)
	}
	lock.Unlock()
	must(t, 0, w.WaitHandlers(t.Context()))
	if !added.HasSynced() {
		t.Error("the registration has not synced")
	}
	w.Put(pod("c")) // waits
	if want := []string{"a", "b", "c"}; !slices.Equal(seen, want) {
		t.Errorf("the handler got %v, want %v", seen, want)
	}
}

// A handler may put objects into the World, and waits neither for itself nor for its own events.
func TestHandlerThatPuts(t *testing.T) {
	w := fakes.NewWorld(t)
	var seen []string
	handlers(t, w, cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		seen = append(seen, object.(*corev1.Pod).Name) //nolint:forcetypeassert // pods
		if len(seen) < 3 {
			w.Put(pod(fmt.Sprintf("p%d", len(seen))))
		}
	}})
	w.Put(pod("p0"))
	if want := []string{"p0", "p1", "p2"}; !slices.Equal(seen, want) {
		t.Errorf("the handler got %v, want %v", seen, want)
	}
}

// The next change by the test, or WaitHandlers, reports a panic of a handler. Later events are
// still delivered.
func TestHandlerPanics(t *testing.T) {
	w := fakes.NewWorld(t)
	updates := 0
	handlers(t, w, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { panic("no pods") },
		UpdateFunc: func(_, _ any) { updates++ },
		DeleteFunc: func(any) { runtime.Goexit() }, // as T.FailNow does
	})
	func() {
		defer func() {
			thrown, ok := recover().(*fakes.HandlerPanicError)
			if !ok || thrown.Value != "no pods" || !strings.Contains(thrown.Error(), "informer of *v1.Pod panicked at") ||
				!strings.Contains(thrown.Frame, "TestHandlerPanics") || !strings.Contains(thrown.Stack, "events_test.go") {
				t.Errorf("Put panicked with %v, want the panic of the handler and its place", thrown)
			}
		}()
		w.Put(pod("a"), pod("b"))
	}()
	must(t, 0, second(w.Client().CoreV1().Pods("default").Create(t.Context(), pod("c"), metav1.CreateOptions{})))
	var thrown *fakes.HandlerPanicError
	if err := w.WaitHandlers(t.Context()); !errors.As(err, &thrown) {
		t.Errorf("got %v from WaitHandlers, want the panic", err)
	}
	w.Delete(pod("a"))
	w.Put(pod("b"))
	if updates != 1 {
		t.Errorf("the handler got %d updates after its panics, want 1", updates)
	}
}

// The end of the test reports a panic that nothing else has reported.
func TestHandlerPanicAtTheEnd(t *testing.T) {
	r := &recorder{}
	w := fakes.NewWorld(r)
	handlers(t, w, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("no pods") }})
	must(t, 0, second(w.Client().CoreV1().Pods("default").Create(t.Context(), pod("a"), metav1.CreateOptions{})))
	r.end()
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "end of test: an event handler of the informer of *v1.Pod panicked at") {
		t.Errorf("the test's errors are %q, want the panic", r.errors)
	}
}
