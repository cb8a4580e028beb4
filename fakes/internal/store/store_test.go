package store_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/admissiontest/admissiontest/fakes/internal/store"
	"github.com/admissiontest/admissiontest/internal/kinds"
)

func TestOnChangeIsCalledUnderTheLock(t *testing.T) {
	pods := &kinds.Kind{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	pod := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}} }
	s := store.New()
	var got []watch.EventType
	s.OnChange = func(c store.Change) {
		if s.TryLock() {
			t.Errorf("%s: the lock is free", c.Type)
			s.Unlock()
		}
		if found := s.Get(pods, store.KeyOf(c.Object)) != nil; found != (c.Type != watch.Deleted) {
			t.Errorf("%s: the object is in the store: %t", c.Type, found)
		}
		got = append(got, c.Type)
	}
	s.Lock()
	s.Set(pods, pod())
	changed := s.Changed.Wait()
	s.Set(pods, pod())
	s.Remove(pods, store.KeyOf(pod()))
	s.Unlock()
	if want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}; !slices.Equal(got, want) {
		t.Errorf("changes: got %v, want %v", got, want)
	}
	select {
	case <-changed:
	default:
		t.Error("Changed was not raised")
	}
}
