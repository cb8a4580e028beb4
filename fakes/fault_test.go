package fakes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFailOn(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("a"), pod("a")))
	client := w.Client().CoreV1()
	gone := errors.New("the cable was cut")
	w.FailOn("create", "namespaces", apierrors.NewAlreadyExists(corev1.Resource("namespaces"), "b"))
	w.FailOn("*", "pods/status", gone)

	if _, err := client.Namespaces().Create(t.Context(), namespace("b"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v, want the Status given", err)
	}
	if _, err := client.Namespaces().Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v: a call that fails has no effect", err)
	}
	if _, err := client.Pods("default").UpdateStatus(t.Context(), pod("a"), metav1.UpdateOptions{}); !errors.Is(err, gone) {
		t.Errorf("got %v, want the error of the connection", err)
	}
	if _, err := client.Pods("default").Update(t.Context(), pod("a"), metav1.UpdateOptions{}); err != nil {
		t.Errorf("got %v: a fault of pods/status is none of pods", err)
	}
	calls := w.Calls()
	if !errors.Is(calls[2].Err, gone) || !apierrors.IsAlreadyExists(calls[0].Err) || calls[3].Err != nil {
		t.Errorf("got errors %v, %v, %v, want what the callers got", calls[0].Err, calls[2].Err, calls[3].Err)
	}
	w.FailOn("*", "*", nil)
	if _, err := client.Namespaces().Create(t.Context(), namespace("b"), metav1.CreateOptions{}); err != nil {
		t.Errorf("got %v after FailOn with nil", err)
	}
}

type contextKey struct{}

// A call gets the context of the caller with its values, and ends when that context is canceled.
func TestBlockedCallEndsWithItsContext(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	release := w.BlockOn("get", "pods")
	defer release()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "mine"))
	ended := make(chan error)
	go func() {
		_, err := w.Client().CoreV1().Pods("default").Get(ctx, "a", metav1.GetOptions{})
		ended <- err
	}()
	if !w.WaitCall(t.Context(), "get", "pods") {
		t.Fatal("the call was not made")
	}
	select {
	case err := <-ended:
		t.Fatalf("the call returned %v, want it to block", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	if calls := w.Calls(); calls[0].Context.Value(contextKey{}) != "mine" {
		t.Error("the call was not made with the caller's context")
	}
	if w.WaitCall(ctx, "list", "pods") {
		t.Error("WaitCall is true for a call that was not made")
	}
	if _, err := w.Client().CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for a context that has ended before", err)
	}
}

func TestReleaseLetsCallsPass(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	release := w.BlockOn("*", "*")
	ended := make(chan error)
	go func() {
		_, err := w.Client().CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
		ended <- err
	}()
	release()
	release() // twice is fine
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCalls(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), namespace("default")))
	client := w.Client()
	ctx := context.WithValue(t.Context(), contextKey{}, 7)
	_, err := client.CoreV1().Namespaces().UpdateStatus(ctx, namespace("default"), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, 0, err)
	_, err = client.CoreV1().Pods("default").Patch(ctx, "a", "application/merge-patch+json", []byte(`{}`), metav1.PatchOptions{})
	must(t, 0, err)
	_, err = client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	must(t, 0, err)
	_, err = client.Discovery().ServerVersion()
	must(t, 0, err)
	calls := w.Calls()
	const want = "update v1 namespaces/status default (dry run)\npatch v1 pods default/a\nlist v1 pods\nget /version"
	if got := calls.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := calls.Writes(); len(got) != 1 || string(got[0].Patch) != "{}" {
		t.Errorf("got writes %v, want the patch: a dry run does not write", got)
	}
	if calls[0].Context.Value(contextKey{}) != 7 || calls[0].Object.(*corev1.Namespace).Name != "default" { //nolint:forcetypeassert // namespaces
		t.Errorf("got %+v, want the caller's context and object", calls[0])
	}
	for _, is := range [][2]string{{"*", "*"}, {"patch", "pods"}, {"update", "namespaces/status"}, {"update", "namespaces/*"}, {"get", "/version"}} {
		if !calls.Has(is[0], is[1]) {
			t.Errorf("has no %v", is)
		}
	}
	for _, isNot := range [][2]string{{"create", "*"}, {"*", "nodes"}, {"update", "namespaces"}, {"list", "pods.apps"}} {
		if calls.Has(isNot[0], isNot[1]) {
			t.Errorf("has %v, which was not called", isNot)
		}
	}
}
