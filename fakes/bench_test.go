package fakes_test

import (
	"fmt"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// An empty World with client and informers. The contract suite makes hundreds of such Worlds.
func BenchmarkEmptyWorld(b *testing.B) {
	for b.Loop() {
		w := fakes.NewWorld(b)
		_, _ = w.Client(), w.Informers()
	}
}

// A World of 1,000 objects whose cache is used.
func BenchmarkWorldOf1000(b *testing.B) {
	objects := make([]runtime.Object, 1000)
	for i := range objects {
		objects[i] = pod(fmt.Sprintf("pod-%d", i))
	}
	for b.Loop() {
		w := fakes.NewWorld(b, fakes.WithObjects(objects...))
		if found := w.Informers().Core().V1().Pods().Informer().GetStore().ListKeys(); len(found) != 1000 {
			b.Fatalf("got %d pods, want 1000", len(found))
		}
	}
}

// What a harness does around a request that reads two objects of 1,000.
func BenchmarkSnapshot(b *testing.B) {
	objects := make([]runtime.Object, 1000)
	for i := range objects {
		objects[i] = pod(fmt.Sprintf("pod-%d", i))
	}
	w := fakes.NewWorld(b, fakes.WithObjects(objects...))
	lister := w.Informers().Core().V1().Pods().Lister().Pods("default")
	for b.Loop() {
		snapshot := w.Snapshot()
		for _, name := range []string{"pod-1", "pod-2"} {
			if _, err := lister.Get(name); err != nil {
				b.Fatal(err)
			}
		}
		if found := snapshot.Mutations(); found != nil {
			b.Fatal(found)
		}
	}
}

func BenchmarkClientGet(b *testing.B) {
	w := fakes.NewWorld(b, fakes.WithObjects(pod("a")))
	client := w.Client().CoreV1().Pods("default")
	for b.Loop() {
		if _, err := client.Get(b.Context(), "a", metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRESTMapper(b *testing.B) {
	for b.Loop() {
		if _, err := fakes.NewWorld(b).RESTMapper().KindFor(pods()); err != nil {
			b.Fatal(err)
		}
	}
}
