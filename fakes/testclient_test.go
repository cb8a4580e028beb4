package fakes_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Calls of the test itself are not recorded, do not fail or wait because of what the test set up
// for the plugin, and wait for event handlers.
func TestClientOfTheTest(t *testing.T) {
	w := fakes.NewWorld(t)
	w.FailOn("*", "*", errors.New("no connection"))
	defer w.BlockOn("*", "*")()
	var seen []string
	handlers(t, w, cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		seen = append(seen, object.(*corev1.Pod).Name) //nolint:forcetypeassert // pods
	}})
	made, err := w.TestClient().CoreV1().Pods("default").Create(t.Context(), pod("a"), metav1.CreateOptions{})
	must(t, made, err)
	if !slices.Equal(seen, []string{"a"}) {
		t.Errorf("the handler got %v when the write returned, want a", seen)
	}
	client, err := dynamic.NewForConfig(w.TestRESTConfig())
	must(t, client, err)
	list, err := client.Resource(pods()).List(t.Context(), metav1.ListOptions{})
	if must(t, list, err); len(list.Items) != 1 {
		t.Errorf("got %v, want the pod", list.Items)
	}
	if calls := w.Calls(); len(calls) != 0 {
		t.Errorf("got calls\n%s\nwant none", calls)
	}
}
