// Package scope knows which of Kubernetes' own kinds are in no namespace.
package scope

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
