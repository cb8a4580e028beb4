package fakes_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
)

// ending is a framework.T that keeps why a test was ended.
type ending struct {
	framework.T
	why string
}

func (*ending) Helper() {}

func (e *ending) Fatalf(format string, args ...any) {
	e.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ended returns the message with which f ends a test. Empty if f does not end the test.
func ended(t *testing.T, f func(framework.T)) string {
	t.Helper()
	e := &ending{T: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(e)
	}()
	<-done
	return e.why
}

// mapping makes a World with a RESTMapping of these and without a scope.
func mapping(kind schema.GroupVersionKind, resource schema.GroupVersionResource) func(framework.T) {
	return func(t framework.T) {
		fakes.NewWorld(t, fakes.WithMappings(meta.RESTMapping{GroupVersionKind: kind, Resource: resource}))
	}
}

func TestMisuseEndsTheTest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var none *corev1.Pod
	widgets := schema.GroupVersion{Group: "example.com", Version: "v1"}
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}}}
	for name, misuse := range map[string]struct {
		do   func(framework.T)
		want []string
	}{
		"nil option":                {func(t framework.T) { fakes.NewWorld(t, nil) }, []string{"option 1 of 1 is nil", "expected"}},
		"nil object":                {func(t framework.T) { fakes.NewWorld(t, fakes.WithObjects(pod("a"), none)) }, []string{"object 2 of 2 is nil"}},
		"nil scheme":                {func(t framework.T) { fakes.NewWorld(t, fakes.WithScheme(nil)) }, []string{"the scheme is nil"}},
		"nil authorizer":            {func(t framework.T) { fakes.NewWorld(t, fakes.WithAuthorizer(nil)) }, []string{"the authorizer is nil", "fakes.Deny()"}},
		"empty mapping":             {mapping(schema.GroupVersionKind{}, schema.GroupVersionResource{}), []string{"is not set: set all of both"}},
		"mapping without group":     {mapping(schema.GroupVersionKind{Version: "v1", Kind: "Widget"}, schema.GroupVersionResource{Version: "v1", Resource: "widgets"}), []string{`mapping of kind "/v1, Kind=Widget"`, "is not set"}},
		"mapping without plural":    {mapping(widgets.WithKind("Widget"), widgets.WithResource("")), []string{"is not set", "plural"}},
		"mapping of another group":  {mapping(widgets.WithKind("Widget"), schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}), []string{"the same group and version"}},
		"mapping without scope":     {mapping(widgets.WithKind("Widget"), widgets.WithResource("widgets")), []string{"Scope is not set", "meta.RESTScopeNamespace", "meta.RESTScopeRoot"}},
		"HTTP method":               {func(t framework.T) { fakes.NewWorld(t).FailOn("post", "pods", nil) }, []string{`FailOn: verb "post" is none of API requests; did you mean "create"?`, "deletecollection"}},
		"HTTP method in capitals":   {func(t framework.T) { fakes.NewWorld(t).BlockOn("PUT", "pods") }, []string{`BlockOn: verb "PUT"`, `did you mean "update"?`}},
		"misspelt verb":             {func(t framework.T) { fakes.NewWorld(t).WaitCall(ctx, "lists", "pods") }, []string{`WaitCall: verb "lists"`, `did you mean "list"?`}},
		"API verb for a path":       {func(t framework.T) { fakes.NewWorld(t).FailOn("create", "/version", nil) }, []string{`verb "create" is none of requests without a resource`}},
		"kind as resource":          {func(t framework.T) { fakes.NewWorld(t).FailOn("create", "Pod/status", nil) }, []string{`no resource "Pod/status"; did you mean "pods/status"?`, "fakes.WithMappings"}},
		"resource of another group": {func(t framework.T) { fakes.NewWorld(t).BlockOn("get", "deployments.app") }, []string{`no resource "deployments.app"; did you mean "deployments.apps"?`}},
		"unknown resource":          {func(t framework.T) { fakes.NewWorld(t).WaitCall(ctx, "get", "widgets") }, []string{`WaitCall: the World has no resource "widgets"`}},
		"no resource":               {func(t framework.T) { fakes.NewWorld(t).FailOn("get", "", nil) }, []string{"the resource is empty"}},
		"unknown type":              {func(t framework.T) { fakes.NewWorld(t, fakes.WithObjects(&fischer{})) }, []string{"no scheme knows type *fakes_test.fischer", "fakes.WithScheme"}},
		"unknown kind":              {func(t framework.T) { fakes.NewWorld(t).Put(widget) }, []string{"no scheme knows kind example.com/v1, Kind=Widget", "fakes.WithMappings"}},
		"unstructured without kind": {func(t framework.T) { fakes.NewWorld(t).Put(&unstructured.Unstructured{}) }, []string{"has no apiVersion or kind"}},
		"no name":                   {func(t framework.T) { fakes.NewWorld(t).Put(&corev1.Pod{}) }, []string{"a Pod has no name"}},
		"no metadata":               {func(t framework.T) { fakes.NewWorld(t).Put(&metav1.DeleteOptions{}) }, []string{"has no metadata"}},
		"wrong scope": {func(t framework.T) {
			fakes.NewWorld(t).PutCache(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}})
		}, []string{`Namespace "a" has namespace "b"`, "cluster-scoped"}},
		"nil type":       {func(t framework.T) { fakes.NewWorld(t).MarkSynced(none) }, []string{"object 1 of 1 is nil"}},
		"nil in Preload": {func(t framework.T) { fakes.Preload(fakes.NewWorld(t), newFactory(), none) }, []string{"object 1 of 1 is nil"}},
		"Preload too late": {func(t framework.T) {
			factory := informers.NewSharedInformerFactory(nil, 0)
			factory.Core().V1().Pods().Informer()
			fakes.Preload(fakes.NewWorld(t), factory, pod("a"))
		}, []string{"another informer of *v1.Pod already", "before"}},
	} {
		t.Run(name, func(t *testing.T) {
			why := ended(t, misuse.do)
			for _, want := range misuse.want {
				if !strings.Contains(why, want) {
					t.Errorf("ended with %q, want it to say %q", why, want)
				}
			}
		})
	}
}
