package kinds

import (
	_ "embed"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtInTable are the resources that a kube-apiserver serves by default. A line has the group and version, the resource,
// the kind (with group and version if they differ), the scope, the singular name, the short names, and "delete" if objects are stored: they
// can be listed and deleted. A test compares
// it with an API server and writes it with -update.
//
//go:embed resources.tsv
var builtInTable string

// BuiltIn returns the resources that a kube-apiserver serves by default, in the form of a discovery.
func BuiltIn() []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for line := range strings.Lines(builtInTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		resource := metav1.APIResource{Name: cells[1], Kind: cells[2], Namespaced: cells[3] == "namespaced", SingularName: cells[4]}
		if parts := strings.Split(cells[2], "/"); len(parts) == 3 {
			resource.Group, resource.Version, resource.Kind = parts[0], parts[1], parts[2]
		}
		if cells[5] != "" {
			resource.ShortNames = strings.Split(cells[5], ",")
		}
		if cells[6] != "" {
			resource.Verbs = metav1.Verbs{"list", cells[6]}
		}
		if len(lists) == 0 || lists[len(lists)-1].GroupVersion != cells[0] {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: cells[0]})
		}
		last := lists[len(lists)-1]
		last.APIResources = append(last.APIResources, resource)
	}
	return lists
}

// IsBuiltInGroup reports whether a kube-apiserver serves an API group by default, or reserves it for Kubernetes.
func IsBuiltInGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.Contains("\n"+builtInTable, "\n"+group+"/")
}

// IsCluster reports whether objects of one of Kubernetes' own kinds are in no
// namespace. A test compares it with the discovery of a kube-apiserver.
func IsCluster(gk schema.GroupKind) bool {
	switch gk.Group {
	case "":
		return slices.Contains([]string{"ComponentStatus", "Namespace", "Node", "PersistentVolume"}, gk.Kind)
	case "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io",
		"storagemigration.k8s.io", "node.k8s.io", "imagepolicy.k8s.io", "authentication.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io":
		return true
	case "authorization.k8s.io":
		return gk.Kind != "LocalSubjectAccessReview"
	case "certificates.k8s.io":
		return slices.Contains([]string{"CertificateSigningRequest", "ClusterTrustBundle"}, gk.Kind)
	case "networking.k8s.io":
		return slices.Contains([]string{"IngressClass", "IPAddress", "ServiceCIDR"}, gk.Kind)
	case "rbac.authorization.k8s.io":
		return slices.Contains([]string{"ClusterRole", "ClusterRoleBinding"}, gk.Kind)
	case "resource.k8s.io":
		return slices.Contains([]string{"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"}, gk.Kind)
	case "scheduling.k8s.io":
		return gk.Kind == "PriorityClass"
	case "storage.k8s.io":
		return gk.Kind != "CSIStorageCapacity"
	default:
		return false
	}
}
