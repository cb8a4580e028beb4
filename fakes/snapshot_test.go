package fakes_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// A change to a cached object is found, in whatever way the plugin got the object. It is reported
// once, and afterwards the cache has the original object again.
func TestMutationsAreFound(t *testing.T) {
	for name, take := range map[string]func(*testing.T, *fakes.World) *corev1.Pod{
		"by lister": func(t *testing.T, w *fakes.World) *corev1.Pod {
			got, err := w.Informers().Core().V1().Pods().Lister().Pods("default").Get("a")
			return must(t, got, err)
		},
		"by list": func(t *testing.T, w *fakes.World) *corev1.Pod {
			got, err := w.Informers().Core().V1().Pods().Lister().List(labels.Everything())
			return must(t, got, err)[0]
		},
		"by list of a namespace": func(t *testing.T, w *fakes.World) *corev1.Pod {
			got, err := w.Informers().Core().V1().Pods().Lister().Pods("default").List(labels.Everything())
			return must(t, got, err)[0]
		},
		"by index": func(t *testing.T, w *fakes.World) *corev1.Pod {
			got, err := w.Informers().Core().V1().Pods().Informer().GetIndexer().ByIndex(cache.NamespaceIndex, "default")
			return must(t, got, err)[0].(*corev1.Pod) //nolint:forcetypeassert // pods
		},
		"by store": func(t *testing.T, w *fakes.World) *corev1.Pod {
			got, _, err := w.Informers().Core().V1().Pods().Informer().GetStore().Get(pod("a"))
			return must(t, got, err).(*corev1.Pod) //nolint:forcetypeassert // pods
		},
		"by handler": func(t *testing.T, w *fakes.World) (got *corev1.Pod) {
			_, err := w.Informers().Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
				got = object.(*corev1.Pod) //nolint:forcetypeassert // pods
			}})
			must(t, 0, err)
			return must(t, got, w.WaitHandlers(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
			snapshot := w.Snapshot()
			got := take(t, w)
			if found := snapshot.Mutations(); found != nil {
				t.Fatalf("got %v before anything was changed", found)
			}
			got.Labels["app"] = "scribble"
			found := snapshot.Mutations()
			if len(found) != 1 || !strings.HasPrefix(found[0].String(), "v1 Pod default/a: ") ||
				!strings.Contains(found[0].Diff, "scribble") || found[0].Kind.Kind != "Pod" {
				t.Fatalf("got %v, want the label of pod default/a", found)
			}
			if again := append(snapshot.Mutations(), w.Mutations()...); again != nil {
				t.Errorf("reported twice: %v", again)
			}
			fresh := take(t, w)
			if fresh == got || fresh.Labels["app"] != "a" {
				t.Errorf("the cache has %v, want a fresh copy of the original", fresh.Labels)
			}
			got.Labels["app"] = "another"
			if found := snapshot.Mutations(); len(found) != 1 {
				t.Errorf("got %v, want the second change of the same object", found)
			}
		})
	}
}

// A later change to an object that an earlier request read is found later.
func TestMutationOfWhatIsAliased(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), pod("b")))
	lister := w.Informers().Core().V1().Pods().Lister().Pods("default")
	early, err := lister.Get("a")
	must(t, early, err)
	snapshot := w.Snapshot()
	late, err := lister.Get("b")
	must(t, late, err)
	w.Put(pod("b")) // the cache holds another one now
	alias := late.Labels
	if found := snapshot.Mutations(); found != nil {
		t.Fatalf("got %v, want nothing yet", found)
	}
	alias["app"] = "scribble"
	early.Name = "scribble"
	if found := snapshot.Mutations(); len(found) != 1 || found[0].Name != "b" {
		t.Errorf("got %v, want b alone: a was handed out before", found)
	}
	if found := w.Mutations(); len(found) != 1 || found[0].Name != "a" {
		t.Errorf("got %v, want a, of all that was ever handed out", found)
	}
}

// Reading is no change: a quantity caches its text.
func TestReadingIsNoMutation(t *testing.T) {
	object := pod("a")
	object.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}
	w := fakes.NewWorld(t, fakes.WithObjects(object))
	snapshot := w.Snapshot()
	got, err := w.Informers().Core().V1().Pods().Lister().Pods("default").Get("a")
	cpu := must(t, got, err).Spec.Overhead[corev1.ResourceCPU]
	_ = cpu.String()
	if found := snapshot.Mutations(); found != nil {
		t.Errorf("got %v, want nothing", found)
	}
	if found := (&fakes.Snapshot{}).Mutations(); found != nil {
		t.Errorf("got %v of the zero Snapshot", found)
	}
}

// A changed namespace or label does not leave the original in the wrong index.
func TestMutationLeavesIndexes(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	lister := w.Informers().Core().V1().Pods().Lister()
	got, err := lister.Pods("default").Get("a")
	must(t, got, err).Namespace = "other"
	if found := w.Mutations(); len(found) != 1 {
		t.Fatalf("got %v, want one", found)
	}
	w.Put(pod("a"))
	for ns, want := range map[string]int{"default": 1, "other": 0} {
		if found, err := lister.Pods(ns).List(labels.Everything()); err != nil || len(found) != want {
			t.Errorf("in %s: got %d, %v, want %d", ns, len(found), err, want)
		}
	}
	if _, err := w.Client().CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func must[V any](t *testing.T, v V, err error) V {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
