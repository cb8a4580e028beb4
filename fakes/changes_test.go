package fakes_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes"
)

// TestChangesByTheTest: handlers see a deletion, a deletion that the informer has missed, and a
// resync as they do on a server.
func TestChangesByTheTest(t *testing.T) {
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	w := fakes.NewWorld(t, fakes.WithObjects(node("a"), node("b"), node("c")))
	informer := w.Informers().Core().V1().Nodes()
	var events []string
	note := func(format string, args ...any) { events = append(events, fmt.Sprintf(format, args...)) }
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, is any) { note("update %s %t", is.(*corev1.Node).Name, old == is) },
		DeleteFunc: func(object any) {
			if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
				note("lost %s %s", lost.Key, lost.Obj.(*corev1.Node).Name)
				return
			}
			note("delete %s", object.(*corev1.Node).Name)
		},
	}); err != nil {
		t.Fatal(err)
	}
	w.Delete(node("a"))
	w.DeleteUnseen(node("b"))
	if n := w.Resync(); n != 1 {
		t.Errorf("Resync returned %d, want 1 handler", n)
	}
	if diff := cmp.Diff([]string{"delete a", "lost b b", "update c true"}, events); diff != "" {
		t.Error(diff)
	}
	left := w.Objects()
	if len(left) != 1 || left[0].(*corev1.Node).Name != "c" {
		t.Errorf("stored objects are %v, want c", left)
	}
	if keys := informer.Informer().GetStore().ListKeys(); len(keys) != 1 {
		t.Errorf("the cache has %v, want only c", keys)
	}
}
