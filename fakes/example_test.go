package fakes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exampleT is a framework.T for examples. In a test, use its *testing.T.
type exampleT struct{ framework.T }

func (exampleT) Helper()                           {}
func (exampleT) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// Listers see what a client writes. Informers need no start.
func ExampleNewWorld() {
	t, ctx := exampleT{}, context.Background()
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}))

	lister := w.Informers().Core().V1().Namespaces().Lister()
	found, err := lister.Get("default")
	fmt.Println(found.Name, err)

	_, err = w.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}}, metav1.CreateOptions{})
	fmt.Println(err)
	found, err = lister.Get("made")
	fmt.Println(found.Name, err)
	fmt.Println(w.Calls())
	// Output:
	// default <nil>
	// <nil>
	// made <nil>
	// create v1 namespaces made
}

// The error of a call, for example of one that another client was faster with.
func ExampleWorld_FailOn() {
	t, ctx := exampleT{}, context.Background()
	w := fakes.NewWorld(t)
	w.FailOn("create", "namespaces", apierrors.NewAlreadyExists(corev1.Resource("namespaces"), "made"))

	_, err := w.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}}, metav1.CreateOptions{})
	fmt.Println(apierrors.IsAlreadyExists(err), w.Calls().Has("create", "namespaces"))
	// Output: true true
}

// A change to an object of a cache is found.
func ExampleSnapshot_Mutations() {
	t := exampleT{}
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}))
	snapshot := w.Snapshot()

	cached, _ := w.Informers().Core().V1().Namespaces().Lister().Get("default")
	cached.Labels = map[string]string{"changed": "in place"}

	for _, m := range snapshot.Mutations() {
		fmt.Println(m.Kind.Kind, m.Name, m.Diff != "")
	}
	// Output: Namespace default true
}
