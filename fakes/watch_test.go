package fakes_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWatch(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), pod("x")))
	client := w.Client().CoreV1().Pods("default")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, list, err)
	w.Put(pod("b"))
	truth := true
	for name, c := range map[string]struct {
		options metav1.ListOptions
		want    string
	}{
		"from a list on":      {metav1.ListOptions{ResourceVersion: list.ResourceVersion}, "ADDED b"},
		"from anywhere on":    {metav1.ListOptions{}, "ADDED a, ADDED b, ADDED x"},
		"with initial events": {metav1.ListOptions{SendInitialEvents: &truth, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, "ADDED a, ADDED b, ADDED x, BOOKMARK "},
		"of one":              {metav1.ListOptions{FieldSelector: "metadata.name=b"}, "ADDED b"},
		"of a label":          {metav1.ListOptions{LabelSelector: "app=x"}, "ADDED x"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := client.Watch(t.Context(), c.options)
			must(t, events, err)
			defer events.Stop()
			var got []string
			for range strings.Split(c.want, ", ") {
				event := <-events.ResultChan()
				object, ok := event.Object.(*corev1.Pod)
				if !ok {
					t.Fatalf("got %v", event.Object)
				}
				got = append(got, string(event.Type)+" "+object.Name)
				if event.Type == watch.Bookmark && object.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
					t.Errorf("the bookmark has annotations %v", object.Annotations)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// What leaves a selection is deleted for its watcher, and what enters is added.
func TestWatchOfASelection(t *testing.T) {
	w := fakes.NewWorld(t)
	client := w.Client().CoreV1().Pods("default")
	events, err := client.Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=a"})
	must(t, events, err)
	defer events.Stop()
	other := pod("a")
	other.Labels = nil
	w.Put(other)
	w.Put(pod("a"))
	w.Put(pod("a"))
	w.Put(other)
	w.Put(pod("a"))
	must(t, 0, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added, watch.Deleted} {
		if event := <-events.ResultChan(); event.Type != want {
			t.Fatalf("got %s, want %s", event.Type, want)
		}
	}
}

// A watch ends with its context, and with its timeout.
func TestWatchEnds(t *testing.T) {
	w := fakes.NewWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	events, err := w.Client().CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	must(t, events, err)
	cancel()
	for range events.ResultChan() {
	}
	events, err = w.Client().CoreV1().Pods("default").Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	must(t, events, err)
	events.Stop()
	goleak.VerifyNone(t) // nothing reads any more, though the context lives on
	second := int64(1)
	events, err = w.Client().CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: &second})
	must(t, events, err)
	for event := range events.ResultChan() {
		t.Errorf("got %v", event)
	}
}

// A real informer, with the reflector of client-go, lists as its client-go does and gets
// what comes later: plugins that make their own informer work.
func TestRealInformer(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	factory := informers.NewSharedInformerFactory(w.Client(), 0)
	informer := factory.Core().V1().Pods().Informer()
	added := make(chan string, 10)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		added <- object.(*corev1.Pod).Name //nolint:forcetypeassert // pods
	}})
	must(t, 0, err)
	stop := make(chan struct{})
	factory.Start(stop)
	defer factory.Shutdown()
	defer close(stop)
	if synced := factory.WaitForCacheSync(stop); len(synced) != 1 {
		t.Fatal("has not synced")
	}
	if name := <-added; name != "a" {
		t.Errorf("got %s, want a", name)
	}
	w.Put(pod("b"))
	if name := <-added; name != "b" {
		t.Errorf("got %s, want b", name)
	}
	var verbs []string
	for _, call := range w.Calls() {
		verbs = append(verbs, call.Verb)
	}
	want := []string{"watch"} // a streaming list, the default since client-go 0.35
	if !features.FeatureGates().Enabled(features.WatchListClient) {
		want = []string{"list", "watch"}
	}
	if !slices.Equal(verbs, want) {
		t.Errorf("got calls\n%s\nwant the verbs %s", w.Calls(), want)
	}
}
