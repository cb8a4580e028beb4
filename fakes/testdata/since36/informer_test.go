package since36

import (
	"context"
	"reflect"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// A factory that is started, waited for and shut down returns at once.
func TestFactoryNeedsNoStart(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	w := fakes.NewWorld(t, fakes.WithObjects(pod), fakes.Unsynced(&corev1.Secret{}))
	factory := w.Informers()
	factory.Core().V1().Pods().Informer().GetStore()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.StartWithContext(ctx)
	if result := factory.WaitForCacheSyncWithContext(ctx); result.Err != nil {
		t.Error(result.Err)
	}
	factory.Core().V1().Secrets().Informer().GetStore()
	cancel()
	if result := factory.WaitForCacheSyncWithContext(ctx); result.Err == nil || result.Synced[reflect.TypeFor[*corev1.Secret]()] {
		t.Errorf("got %v, want that secrets have not synced", result)
	}
}

// The channel of each checker is closed by MarkSynced, and a call of Done counts.
func TestHasSyncedChecker(t *testing.T) {
	w := fakes.NewWorld(t, fakes.Unsynced(&corev1.Pod{}))
	informer := w.Informers().Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	for i, checker := range []cache.DoneChecker{
		informer.HasSyncedChecker(), informer.GetController().HasSyncedChecker(), registration.HasSyncedChecker(),
	} {
		if cache.IsDone(checker) {
			t.Errorf("checker %d, %s, is done before it has synced", i, checker.Name())
		}
		if n := w.HasSyncedCalls(); n != i+1 {
			t.Errorf("%d calls, want %d", n, i+1)
		}
		defer func() { <-checker.Done() }()
	}
	w.MarkSynced()
}
