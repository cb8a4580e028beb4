package harness_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// worker starts a goroutine where a test says, which ends when release is closed or,
// if it listens, when it is drained.
type worker struct {
	scripted
	listens bool
	at      string
	drained <-chan struct{}
	release <-chan struct{}
}

func (w *worker) SetDrainedNotification(drained <-chan struct{}) {
	w.drained = drained
	w.begin("initialization")
}

func (w *worker) ValidateInitialization() error { w.begin("validation"); return nil }

func (w *worker) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	w.begin("Admit")
	return nil
}

func (w *worker) begin(at string) {
	if w.at == at {
		go w.work(w.drained)
	}
}

func (w *worker) work(drained <-chan struct{}) {
	if !w.listens {
		drained = nil
	}
	select {
	case <-drained:
	case <-w.release:
	}
}

// TestGoroutines is about goroutines that outlive their plugin.
func TestGoroutines(t *testing.T) {
	for _, at := range []string{"the factory", "initialization", "validation", "Admit"} {
		for _, listens := range []bool{true, false} {
			if listens && at == "the factory" {
				continue // it knows of no notification yet
			}
			t.Run(at+map[bool]string{true: " listens", false: " leaks"}[listens], func(t *testing.T) {
				release := make(chan struct{})
				t.Cleanup(func() { close(release) })
				h, err := harness.Build(t, harness.FromFactory(func(io.Reader) (admission.Interface, error) {
					w := &worker{scripted: scripted{Handler: admission.NewHandler(admission.Create)}, listens: listens, at: at, release: release}
					w.begin("the factory")
					return w, nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				beside := make(chan struct{})
				go (&worker{release: release}).work(nil) // a goroutine of another test that runs at the same time
				close(beside)
				h.Do(framework.Create(pod("p"))).MustAllow(t)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				if listens {
					ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
				}
				defer cancel()
				err = h.Close(ctx)
				if listens {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil {
					t.Fatal("no error")
				}
				mustHave(t, err.Error(), "close harness of *harness_test.worker", "still runs after the drained notification: 1 × ", "harness_test.(*worker).work (close_test.go:")
				if n := strings.Count(err.Error(), "still runs"); n != 1 {
					t.Errorf("%d goroutines blamed, want 1:\n%v", n, err)
				}
			})
		}
	}
}

// TestNewReportsGoroutines tests the same for New, which fails the test at its end.
func TestNewReportsGoroutines(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	leak := func(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
		go func() { <-release }()
		return nil
	}
	failed := record(func(r *recorder) { harness.New(r, plugin(leak, nil)).Do(framework.Create(pod("p"))) })
	if len(failed.errors) != 1 {
		t.Fatalf("errors: %q", failed.errors)
	}
	mustHave(t, failed.errors[0], "still runs", "close_test.go")
}

// reader has a client and a lister.
type reader struct {
	scripted
	client kubernetes.Interface
	lister corelisters.NamespaceLister
}

func (r *reader) SetExternalKubeClientSet(client kubernetes.Interface) { r.client = client }

func (r *reader) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	r.lister = f.Core().V1().Namespaces().Lister()
}

func (r *reader) ValidateInitialization() error { return nil }

// reading is a Source of a reader whose Admit does this.
func reading(admit func(context.Context, *reader, admission.Attributes) error) harness.Source {
	return harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		r := &reader{scripted: scripted{Handler: admission.NewHandler(admission.Create)}}
		r.admit = func(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
			return admit(ctx, r, a)
		}
		return r, nil
	})
}

func namespaces(t *testing.T) harness.Option {
	t.Helper()
	return harness.WithWorld(fakes.NewWorld(t, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}})))
}

// TestCalls is about what a plugin does with the World's clients.
func TestCalls(t *testing.T) {
	h := harness.New(t, reading(func(ctx context.Context, r *reader, a admission.Attributes) error {
		_, err := r.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
		return err
	}), namespaces(t))
	for range 2 {
		result := h.Do(framework.Create(pod("p"))).MustAllow(t)
		if len(result.Calls) != 1 || !result.Calls.Has("get", "namespaces") {
			t.Errorf("calls: %s", result.Calls)
		}
	}
	elsewhere := h.Do(framework.Create(pod("p", func(p *corev1.Pod) { p.Namespace = "other" })))
	failed := record(func(r *recorder) { elsewhere.MustAllow(r) })
	mustHave(t, failed.fatal, "404 NotFound", "\ncalls:    get v1 namespaces other: namespaces \"other\" not found")
}

// TestCacheEdits is about changes to objects of the caches, which all readers share.
func TestCacheEdits(t *testing.T) {
	scribble := reading(func(_ context.Context, r *reader, _ admission.Attributes) error {
		all, err := r.lister.List(labels.Everything())
		for _, namespace := range all {
			namespace.Labels = map[string]string{"mine": "now"}
		}
		return err
	})
	h := harness.New(t, scribble, namespaces(t))
	result := h.Do(framework.Create(pod("p")))
	if len(result.CacheEdits) != 1 || result.CacheEdits[0].Name != "test" {
		t.Fatalf("edits: %v", result.CacheEdits)
	}
	failed := record(func(r *recorder) { result.MustAllow(r) })
	if len(failed.errors) != 1 || failed.fatal != "" {
		t.Fatalf("MustAllow says %q, %q", failed.errors, failed.fatal)
	}
	mustHave(t, failed.errors[0], "expected: unchanged cached objects", "changed in the cache: v1 Namespace test", `"mine"`)
}

// TestCacheEditsBetweenCalls is about changes outside of calls, which New's cleanup reports.
func TestCacheEditsBetweenCalls(t *testing.T) {
	var kept *corev1.Namespace
	failed := record(func(r *recorder) {
		h := harness.New(r, reading(func(_ context.Context, p *reader, a admission.Attributes) (err error) {
			kept, err = p.lister.Get(a.GetNamespace())
			return err
		}), namespaces(t))
		h.Do(framework.Create(pod("p"))).MustAllow(r)
		kept.Labels = map[string]string{"mine": "now"}
	})
	if len(failed.errors) != 1 {
		t.Fatalf("errors: %q", failed.errors)
	}
	mustHave(t, failed.errors[0], "the plugin changed a cached object: v1 Namespace test")
}
