package fakes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// held returns a pod with a finalizer.
func held(name string) *corev1.Pod {
	p := pod(name)
	p.Finalizers = []string{"example.com/hold"}
	return p
}

// An object with finalizers stays until the last one is removed.
func TestFinalizers(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(held("a")))
	client, ctx := w.Client().CoreV1().Pods("default"), t.Context()
	var events []string
	handlers(t, w, cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			events = append(events, "update")
			if object.(*corev1.Pod).DeletionTimestamp == nil { //nolint:forcetypeassert // pods
				t.Error("an update before the deletion")
			}
		},
		DeleteFunc: func(any) { events = append(events, "delete") },
	})
	must(t, 0, client.Delete(ctx, "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	if got, err := client.Get(ctx, "a", metav1.GetOptions{}); err != nil || got.DeletionTimestamp != nil {
		t.Errorf("got %v, %v after a dry run, want the object as it was", got, err)
	}
	must(t, 0, client.Delete(ctx, "a", metav1.DeleteOptions{}))
	deleting, err := client.Get(ctx, "a", metav1.GetOptions{})
	if must(t, deleting, err).DeletionTimestamp == nil || deleting.DeletionGracePeriodSeconds == nil || *deleting.DeletionGracePeriodSeconds != 0 {
		t.Fatalf("got %v, want a deletion timestamp and a grace period of 0", deleting.ObjectMeta)
	}
	must(t, 0, client.Delete(ctx, "a", metav1.DeleteOptions{}))
	again, err := client.Get(ctx, "a", metav1.GetOptions{})
	if must(t, again, err).ResourceVersion != deleting.ResourceVersion {
		t.Error("a second delete changed the object")
	}
	kept := deleting.DeepCopy()
	kept.DeletionTimestamp, kept.Labels["app"] = nil, "changed"
	kept, err = client.Update(ctx, kept, metav1.UpdateOptions{})
	if must(t, kept, err); !kept.DeletionTimestamp.Equal(deleting.DeletionTimestamp) || kept.Labels["app"] != "changed" {
		t.Errorf("got %v, want the deletion timestamp kept", kept.ObjectMeta)
	}
	more := kept.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/more")
	if _, err := client.Update(ctx, more, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v for a new finalizer on an object in deletion, want it invalid", err)
	}
	last, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if must(t, last, err); len(last.Finalizers) != 0 {
		t.Errorf("got %v, want no finalizers", last.Finalizers)
	}
	if _, err := client.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v after the last finalizer was removed, want not found", err)
	}
	must(t, 0, w.WaitHandlers(ctx))
	if want := []string{"update", "update", "delete"}; !slices.Equal(events, want) {
		t.Errorf("handlers got %v, want %v", events, want)
	}
}

// Clients cannot set a deletion timestamp. Tests can.
func TestDeletionTimestamp(t *testing.T) {
	now := metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	deleting := held("a")
	deleting.DeletionTimestamp = &now
	w := fakes.NewWorld(t, fakes.WithObjects(deleting, held("b")))
	client := w.Client().CoreV1().Pods("default")
	got, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if must(t, got, err); !got.DeletionTimestamp.Equal(&now) {
		t.Errorf("got %v, want the timestamp that the test has set", got.DeletionTimestamp)
	}
	made := held("c")
	made.DeletionTimestamp = &now
	made, err = client.Create(t.Context(), made, metav1.CreateOptions{})
	if must(t, made, err).DeletionTimestamp != nil {
		t.Error("a client created an object in deletion")
	}
	set := held("b")
	set.DeletionTimestamp = &now
	if _, err := client.Update(t.Context(), set, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v for an update that sets a deletion timestamp, want it invalid", err)
	}
	w.Delete(held("a"), held("b"))
	if left := w.Objects(); len(left) != 1 {
		t.Errorf("after World.Delete there are %v, want only c", left)
	}
}

// A delete can demand finalizers for the garbage collector.
func TestPropagation(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("foreground"), pod("orphan"), pod("background"), held("both")))
	client, orphan := w.Client().CoreV1().Pods("default"), true
	foreground, background := metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	for name, test := range map[string]struct {
		options metav1.DeleteOptions
		want    []string
	}{
		"foreground": {metav1.DeleteOptions{PropagationPolicy: &foreground}, []string{"foregroundDeletion"}},
		"orphan":     {metav1.DeleteOptions{OrphanDependents: &orphan}, []string{"orphan"}}, //nolint:staticcheck // clients still send it
		"background": {metav1.DeleteOptions{PropagationPolicy: &background}, nil},
		"both":       {metav1.DeleteOptions{PropagationPolicy: &foreground}, []string{"example.com/hold", "foregroundDeletion"}},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, 0, client.Delete(t.Context(), name, test.options))
			got, err := client.Get(t.Context(), name, metav1.GetOptions{})
			if test.want == nil {
				if !apierrors.IsNotFound(err) {
					t.Errorf("got %v, want not found", err)
				}
				return
			}
			if must(t, got, err); !slices.Equal(got.Finalizers, test.want) || got.DeletionTimestamp == nil {
				t.Errorf("got finalizers %v and deletion timestamp %v, want %v", got.Finalizers, got.DeletionTimestamp, test.want)
			}
		})
	}
	wrong := metav1.DeleteOptions{PropagationPolicy: &foreground, OrphanDependents: &orphan} //nolint:staticcheck // clients still send it
	if err := client.Delete(t.Context(), "both", wrong); !apierrors.IsInvalid(err) {
		t.Errorf("got %v for two policies, want it invalid", err)
	}
}

// A namespace is terminating until the finalizers of its spec are removed.
func TestNamespaceFinalizers(t *testing.T) {
	ns := namespace("a")
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	w := fakes.NewWorld(t, fakes.WithObjects(ns, namespace("b")))
	client := w.Client().CoreV1().Namespaces()
	must(t, 0, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	got, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if must(t, got, err).Status.Phase != corev1.NamespaceTerminating || got.DeletionTimestamp == nil {
		t.Errorf("got %v, want it terminating", got)
	}
	got.Spec.Finalizers = nil
	must(t, 0, second(client.Finalize(t.Context(), got, metav1.UpdateOptions{})))
	must(t, 0, client.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	if left := w.Objects(); len(left) != 0 {
		t.Errorf("got %v, want both removed", left)
	}
}

// Delete collection treats each object as a delete does.
func TestDeleteCollectionWithFinalizers(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), held("b")))
	must(t, 0, w.Client().CoreV1().Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	left := w.Objects()
	if len(left) != 1 || left[0].(*corev1.Pod).Name != "b" || left[0].(*corev1.Pod).DeletionTimestamp == nil {
		t.Errorf("got %v, want b in deletion", left)
	}
}

// An update that changes nothing does not write: the object keeps its resource version, and
// handlers are not called.
func TestWriteOfNothing(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	client, updates := w.Client().CoreV1().Pods("default"), 0
	handlers(t, w, cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { updates++ }})
	before, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, before, err)
	after, err := client.Update(t.Context(), pod("a"), metav1.UpdateOptions{})
	must(t, after, err)
	must(t, 0, w.WaitHandlers(t.Context()))
	if after.ResourceVersion != before.ResourceVersion || updates != 0 {
		t.Errorf("got version %s after %s and %d updates, want no change", after.ResourceVersion, before.ResourceVersion, updates)
	}
}
