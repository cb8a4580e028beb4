package install

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// AdmissionGroup is the API group of webhook configurations and policies.
const AdmissionGroup = "admissionregistration.k8s.io"

// The kinds of AdmissionGroup that decide about requests.
const (
	KindMutatingWebhooks   = "MutatingWebhookConfiguration"
	KindValidatingWebhooks = "ValidatingWebhookConfiguration"
	KindValidatingPolicy   = "ValidatingAdmissionPolicy"
	KindValidatingBinding  = "ValidatingAdmissionPolicyBinding"
	KindMutatingPolicy     = "MutatingAdmissionPolicy"
	KindMutatingBinding    = "MutatingAdmissionPolicyBinding"
)

// AdmissionKinds returns the kinds of AdmissionGroup that decide about requests.
func AdmissionKinds() []string {
	return []string{KindMutatingWebhooks, KindValidatingWebhooks, KindValidatingPolicy, KindValidatingBinding, KindMutatingPolicy, KindMutatingBinding}
}

// IsAdmission reports whether objects of a kind decide about requests: webhook
// configurations, policies and their bindings.
func IsAdmission(kind schema.GroupVersionKind) bool {
	return kind.Group == AdmissionGroup && slices.Contains(AdmissionKinds(), kind.Kind)
}

// RemovalRank returns the rank of a resource: resources of a lower rank are removed first. A policy can refuse the removal
// of webhook configurations, and it is a binding that makes a policy effective. Nothing can refuse the removal of
// bindings: Kubernetes exempts them.
func RemovalRank(res client.Resource) int {
	switch {
	case res.Group != AdmissionGroup:
		return 2
	case strings.HasSuffix(res.Resource, "bindings"):
		return 0
	default:
		return 1
	}
}
