package reach

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// NewMapper returns a mapper of equivalent resources for an API server. Lists is what the discovery
// of the server returns. All versions of a resource are equivalent, and so are events of the core
// group and of events.k8s.io, which kube-apiserver stores in one place
// (k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go).
//
// If rules match several versions, the first version is used. For custom resources, the order of
// versions is that of spec.versions. Discovery does not return this order, so give the
// CustomResourceDefinitions as definitions.
func NewMapper(lists []*metav1.APIResourceList, definitions ...map[string]any) runtime.EquivalentResourceMapper {
	return kinds.NewCatalogue(lists, definitions...)
}
