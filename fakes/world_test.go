package fakes_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func pods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// All ways into a World show the same objects.
func TestOneClusterBehindAll(t *testing.T) {
	given := pod("given")
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("default"), given))
	lister := w.Informers().Core().V1().Pods().Lister()

	typed, err := w.Client().CoreV1().Pods("default").Get(t.Context(), "given", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if typed.UID == "" || typed.ResourceVersion == "" || typed.Labels["app"] != "given" {
		t.Errorf("got %v, want it with UID, resource version and labels", typed.ObjectMeta)
	}
	if given.UID != "" || given.ResourceVersion != "" {
		t.Error("the test's own object was written to")
	}
	cached, err := lister.Pods("default").Get("given")
	if err != nil {
		t.Fatal(err)
	}
	if cached.UID != typed.UID || cached.ResourceVersion != typed.ResourceVersion {
		t.Errorf("cache has %v, client %v", cached.ObjectMeta, typed.ObjectMeta)
	}
	if _, err := w.Client().CoreV1().Pods("default").Create(t.Context(), pod("made"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if found, err := lister.List(labels.Everything()); err != nil || len(found) != 2 {
		t.Errorf("after a create the lister has %d pods (%v), want 2", len(found), err)
	}
	list, err := w.Dynamic().Resource(pods()).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=made"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].GetName() != "made" || list.Items[0].GetKind() != "Pod" {
		t.Errorf("got %v, want the one that the selector is of", list.Items)
	}
	if err := w.Dynamic().Resource(pods()).Namespace("default").Delete(t.Context(), "made", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := lister.Pods("default").Get("made"); !apierrors.IsNotFound(err) {
		t.Errorf("after a delete the lister says %v, want not found", err)
	}
	if _, err := lister.Pods("other").Get("given"); !apierrors.IsNotFound(err) {
		t.Errorf("in another namespace the lister says %v, want not found", err)
	}
	if got := w.Calls().Writes().String(); got != "create v1 pods default/made\ndelete v1 pods default/made" {
		t.Errorf("got writes\n%s", got)
	}
}
