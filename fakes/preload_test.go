package fakes_test

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// fischer is a type of another project.
type fischer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Banned            []string `json:"banned"`
}

func (f *fischer) DeepCopyObject() runtime.Object {
	out := *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Banned = append([]string(nil), f.Banned...)
	return &out
}

func fischers() schema.GroupVersion {
	return schema.GroupVersion{Group: "wardle.example.com", Version: "v1"}
}

func fischerScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(fischers().WithKind("Fischer"), &fischer{})
	return scheme
}

// The rest is as informer-gen generates it for a clientset of another project.

type otherClientset struct{}

type newOtherInformer func(*otherClientset, time.Duration) cache.SharedIndexInformer

type otherFactory struct {
	mu        sync.Mutex
	client    *otherClientset
	informers map[reflect.Type]cache.SharedIndexInformer
	started   map[reflect.Type]bool
	running   sync.WaitGroup
}

func newFactory() *otherFactory {
	return &otherFactory{informers: map[reflect.Type]cache.SharedIndexInformer{}, started: map[reflect.Type]bool{}}
}

func (f *otherFactory) InformerFor(object runtime.Object, fresh newOtherInformer) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	typ := reflect.TypeOf(object)
	if informer, ok := f.informers[typ]; ok {
		return informer
	}
	f.informers[typ] = fresh(f.client, 0)
	return f.informers[typ]
}

func (f *otherFactory) Start(stop <-chan struct{}) {
	for typ, informer := range f.informers {
		if !f.started[typ] {
			f.started[typ] = true
			f.running.Go(func() { informer.Run(stop) })
		}
	}
}

func (f *otherFactory) Fischers(t *testing.T) cache.SharedIndexInformer {
	return f.InformerFor(&fischer{}, func(*otherClientset, time.Duration) cache.SharedIndexInformer {
		t.Error("the factory made another informer")
		return cache.NewSharedIndexInformer(nil, &fischer{}, 0, cache.Indexers{})
	})
}

func TestPreloadFillsAnyFactory(t *testing.T) {
	for name, options := range map[string][]fakes.Option{
		"known to a scheme":    {fakes.WithScheme(fischerScheme())},
		"known to none at all": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w, factory := fakes.NewWorld(t, options...), newFactory()
			fakes.Preload(w, factory, &fischer{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Banned: []string{"b"}})
			stop := make(chan struct{})
			factory.Start(stop)
			informer := factory.Fischers(t)
			if !cache.WaitForCacheSync(stop, informer.HasSynced) {
				t.Fatal("the informer has not synced")
			}
			snapshot := w.Snapshot()
			got, ok, err := informer.GetStore().GetByKey("a")
			if err != nil || !ok {
				t.Fatalf("got %v, %v, want what was preloaded", ok, err)
			}
			got.(*fischer).Banned[0] = "scribble" //nolint:forcetypeassert // the test's own
			if found := snapshot.Mutations(); len(found) != 1 || found[0].Name != "a" {
				t.Errorf("got mutations %v, want the one", found)
			}
			close(stop)
			factory.running.Wait()
			if !informer.IsStopped() {
				t.Error("the informer runs after its stop channel was closed")
			}
		})
	}
}

// Clients see what was preloaded, and informers what clients write.
func TestPreloadIsOfTheWorld(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithScheme(fischerScheme()))
	factory := newFactory()
	fakes.Preload(w, factory, &fischer{}) // the type alone
	if keys := factory.Fischers(t).GetStore().ListKeys(); len(keys) != 0 {
		t.Fatalf("got %v, want nothing for an object without a name", keys)
	}
	resource := w.Dynamic().Resource(fischers().WithResource("fischers"))
	made := toUnstructured(t, &fischer{TypeMeta: metav1.TypeMeta{APIVersion: fischers().String(), Kind: "Fischer"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if _, err := resource.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := factory.Fischers(t).GetStore().GetByKey("a"); !ok {
		t.Error("the informer has not what a client created")
	}
}

// Kubernetes' own factories, made by others, can be filled as well.
func TestPreloadFillsKubernetesFactories(t *testing.T) {
	w, factory := fakes.NewWorld(t), informers.NewSharedInformerFactory(nil, 0)
	fakes.Preload(w, factory, pod("a"))
	lister := factory.Core().V1().Pods().Lister()
	if found, err := lister.List(labels.Everything()); err != nil || len(found) != 1 {
		t.Errorf("got %v, %v, want the pod", found, err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	if synced := factory.WaitForCacheSync(stop); !synced[reflect.TypeFor[*corev1.Pod]()] {
		t.Errorf("got %v, want pods to have synced", synced)
	}
	close(stop)
	factory.Shutdown()
}

func toUnstructured(t *testing.T, object runtime.Object) *unstructuredObject {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructuredObject{Object: content}
}
