package fakes_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"
)

// The types below have the shapes of kcp's generated informers and of its Wants interfaces: an
// informer has objects of all logical clusters, and a plugin gets a local and a global factory.

const clusterAnnotation, byCluster = "kcp.io/cluster", "cluster"

type scopeableInformer interface {
	cache.SharedIndexInformer
	Cluster(name string) cache.SharedIndexInformer
}

type clusterClient struct{}

type newClusterInformer func(clusterClient, time.Duration) scopeableInformer

type clusterFactory struct {
	informers map[reflect.Type]scopeableInformer
}

func newClusterFactory() *clusterFactory {
	return &clusterFactory{map[reflect.Type]scopeableInformer{}}
}

func (f *clusterFactory) InformerFor(object runtime.Object, fresh newClusterInformer) scopeableInformer {
	typ := reflect.TypeOf(object)
	if f.informers[typ] == nil {
		f.informers[typ] = fresh(clusterClient{}, 0)
	}
	return f.informers[typ]
}

// Types is one accessor of the factory.
func (f *clusterFactory) Types() scopeableInformer {
	return f.InformerFor(&fischer{}, func(clusterClient, time.Duration) scopeableInformer { panic("a real informer") })
}

// clusterKey returns "cluster|namespace/name".
func clusterKey(object any) (string, error) {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return "", err
	}
	cluster := object.(metav1.Object).GetAnnotations()[clusterAnnotation] //nolint:forcetypeassert // it has a key
	if cluster == "" {
		return "", errors.New("the object has no annotation " + clusterAnnotation)
	}
	return cluster + "|" + key, nil
}

// clusterInformer is an example of the code that a project writes once for its tests.
type clusterInformer struct{ cache.SharedIndexInformer }

func (i clusterInformer) Cluster(string) cache.SharedIndexInformer { return i.SharedIndexInformer }

func asClusterInformer(inf cache.SharedIndexInformer) scopeableInformer {
	// An error means that the index is there already.
	_ = inf.AddIndexers(cache.Indexers{byCluster: func(object any) ([]string, error) {
		return []string{object.(metav1.Object).GetAnnotations()[clusterAnnotation]}, nil //nolint:forcetypeassert // objects
	}})
	return clusterInformer{inf}
}

type wantsClusterInformers interface {
	SetKcpInformers(local, global *clusterFactory)
}

// typed refuses objects of a type that exists in neither its logical cluster nor the global cache.
type typed struct {
	*admission.Handler
	local, global cache.Indexer
}

func (p *typed) SetKcpInformers(local, global *clusterFactory) {
	p.SetReadyFunc(func() bool { return local.Types().HasSynced() && global.Types().HasSynced() })
	p.local, p.global = local.Types().GetIndexer(), global.Types().GetIndexer()
}

func (p *typed) find(cluster, name string) (*fischer, error) {
	for _, indexer := range []cache.Indexer{p.local, p.global} {
		if found, ok, err := indexer.GetByKey(cluster + "|" + name); err == nil && ok {
			return found.(*fischer), nil //nolint:forcetypeassert // of the informer
		}
	}
	return nil, fmt.Errorf("no type %s in %s", name, cluster)
}

func (p *typed) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.WaitForReady() {
		return errors.New("not ready")
	}
	_, err := p.find(a.GetNamespace(), a.GetName())
	return err
}

func typeIn(cluster, name string, banned ...string) *fischer {
	return &fischer{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{clusterAnnotation: cluster}}, Banned: banned}
}

// A plugin gets two factories of the same type, each with the objects of one World. Objects of
// several logical clusters can have the same name.
func TestLocalAndGlobalFactories(t *testing.T) {
	local, global := newClusterFactory(), newClusterFactory()
	keys := fakes.WithCacheKeys(clusterKey)
	here, there := fakes.NewWorld(t, keys), fakes.NewWorld(t, keys, fakes.WithScheme(fischerScheme()), fakes.Unsynced(&fischer{}))
	fakes.PreloadAs(here, local, asClusterInformer, typeIn("root", "a", "local"), typeIn("org", "a", "other"))
	fakes.PreloadAs(there, global, asClusterInformer, typeIn("root", "b", "global"), typeIn("org", "b"))

	plugin := &typed{Handler: admission.NewHandler(admission.Create)}
	initializer := fakes.NewInitializer(here, fakes.Inject("WantsKcpInformers", func(p wantsClusterInformers) { p.SetKcpInformers(local, global) })).Strict()
	initializer.Initialize(plugin)
	if err := initializer.Err(); err != nil {
		t.Fatal(err)
	}
	if global.Types().HasSynced() {
		t.Error("the global informer has synced before MarkSynced of its World")
	}
	there.MarkSynced()
	for at, want := range map[string]string{"root|a": "[local]", "org|a": "[other]", "root|b": "[global]", "org|b": "[]", "root|c": "no type c in root"} {
		t.Run(at, func(t *testing.T) {
			cluster, name, _ := strings.Cut(at, "|")
			got, err := plugin.find(cluster, name)
			text := fmt.Sprint(err)
			if err == nil {
				text = fmt.Sprint(got.Banned)
			}
			if text != want {
				t.Errorf("got %s, want %s", text, want)
			}
		})
	}
	found, err := local.Types().GetIndexer().ByIndex(byCluster, "org")
	if must(t, found, err); len(found) != 1 {
		t.Errorf("got %v of cluster org, want one", found)
	}
	if err := global.Types().GetStore().Delete(typeIn("org", "b")); err != nil || len(global.Types().GetStore().ListKeys()) != 1 {
		t.Errorf("got %v, %v after a deletion, want b of root", err, global.Types().GetStore().ListKeys())
	}
}

func TestMisuseOfPreloadAs(t *testing.T) {
	used := newClusterFactory()
	used.InformerFor(&fischer{}, func(clusterClient, time.Duration) scopeableInformer {
		return clusterInformer{cache.NewSharedIndexInformer(nil, &fischer{}, 0, nil)}
	})
	for name, test := range map[string]struct {
		do   func(framework.T)
		want string
	}{
		"used factory": {func(t framework.T) { fakes.PreloadAs(fakes.NewWorld(t), used, asClusterInformer, typeIn("root", "a")) }, "the factory has another informer of *fakes_test.fischer already"},
		"no cluster": {func(t framework.T) {
			fakes.PreloadAs(fakes.NewWorld(t, fakes.WithCacheKeys(clusterKey)), newClusterFactory(), asClusterInformer, &fischer{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		}, `key of WithCacheKeys for *fakes_test.fischer "a": the object has no annotation kcp.io/cluster`},
		"no cluster of a stored object": {func(t framework.T) { fakes.NewWorld(t, fakes.WithCacheKeys(clusterKey)).Put(pod("a")) }, `key of WithCacheKeys for *v1.Pod "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			if why := ended(t, test.do); !strings.Contains(why, test.want) {
				t.Errorf("the test ended with %q, want %q", why, test.want)
			}
		})
	}
}
