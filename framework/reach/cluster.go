package reach

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// Cluster returns what package reach needs to know about the API server, as of the time of the
// request. If a method returns an error, the Findings that need the answer have EffectUnknown.
type Cluster interface {
	// EquivalentResourceMapper returns the versions of a resource in which the API server serves
	// the same objects, for matchPolicy Equivalent. NewMapper makes one.
	runtime.EquivalentResourceMapper
	// Namespace returns a namespace, or nil if it does not exist.
	Namespace(ctx context.Context, name string) (map[string]any, error)
	// Params returns the objects of a kind, which policies with this paramKind use as params.
	Params(ctx context.Context, kind schema.GroupVersionKind) (Params, error)
	// Convert returns a copy of an object in another version.
	Convert(ctx context.Context, object map[string]any, kind schema.GroupVersionKind) (map[string]any, error)
}

// NewMapper returns a mapper of equivalent resources for an API server. Lists is what the discovery of the server returns,
// without the order of the versions of custom resources: give the CustomResourceDefinitions as definitions. See kinds.Catalogue.
func NewMapper(lists []*metav1.APIResourceList, definitions ...map[string]any) runtime.EquivalentResourceMapper {
	return kinds.NewCatalogue(lists, definitions...)
}

// Params are the objects of one kind that policies can use as params.
type Params struct {
	// Served is false if the API server does not serve the kind.
	Served bool
	// Namespaced is true if the kind is namespaced.
	Namespaced bool
	// Objects are all objects of the kind, in all namespaces.
	Objects []map[string]any
}

// namespaceLookup is the namespace of a request, or why the namespace is not known.
type namespaceLookup struct {
	known *corev1.Namespace // nil if the namespace does not exist
	err   error
}

func (n namespaceLookup) get(name string) (*corev1.Namespace, error) {
	if n.err != nil {
		return nil, n.err
	}
	if n.known == nil || n.known.Name != name {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	return n.known, nil
}

// namespaceLister is the lister of the predicates of k8s.io/apiserver. A predicate asks a client about a namespace
// that a lister does not find: there is none here, so the lister returns another error, errNoNamespace.
type namespaceLister struct {
	listersv1.NamespaceLister
	lookup namespaceLookup
}

var errNoNamespace = errors.New("there is no such namespace")

// Get implements NamespaceLister.
func (l namespaceLister) Get(name string) (*corev1.Namespace, error) {
	found, err := l.lookup.get(name)
	if apierrors.IsNotFound(err) {
		return nil, errNoNamespace
	}
	return found, err
}

// objectInterfaces implements the methods of admission.ObjectInterfaces that the predicates for
// policies call.
type objectInterfaces struct {
	admission.ObjectInterfaces
	mapper runtime.EquivalentResourceMapper
}

// GetEquivalentResourceMapper implements admission.ObjectInterfaces.
func (o objectInterfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return o.mapper
}

// paramInformer is an informer that has seen all params.
type paramInformer struct {
	indexer  cache.Indexer
	resource schema.GroupResource
}

// newParamInformer returns an informer for params of a kind.
func newParamInformer(kind schema.GroupVersionKind, objects []map[string]any) (informers.GenericInformer, error) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := indexer.Add(&unstructured.Unstructured{Object: object}); err != nil {
			return nil, err
		}
	}
	return paramInformer{indexer: indexer, resource: schema.GroupResource{Group: kind.Group, Resource: kind.Kind}}, nil
}

// Informer implements informers.GenericInformer.
func (p paramInformer) Informer() cache.SharedIndexInformer { return synced{} }

// Lister implements informers.GenericInformer.
func (p paramInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(p.indexer, p.resource)
}

// synced is an informer that has seen everything.
type synced struct{ cache.SharedIndexInformer }

// HasSynced implements cache.SharedIndexInformer.
func (synced) HasSynced() bool { return true }
