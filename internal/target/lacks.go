package target

import "k8s.io/apimachinery/pkg/runtime/schema"

// Feature is what an API server other than kube-apiserver can lack, in words.
type Feature string

// The features that are probed, besides AdmissionOf.
const (
	// Narrowing keeps webhooks from requests in namespaces that they do not select.
	Narrowing Feature = "narrowing"
	// Warnings are warnings of webhooks and policies that arrive in the response.
	Warnings Feature = "warnings"
	// Impersonation lets the run send requests as other users, who may enter.
	Impersonation Feature = "impersonation"
)

// AdmissionOf is the feature that webhooks are called for objects of a kind.
func AdmissionOf(kind schema.GroupKind) Feature { return Feature("admission of " + kind.String()) }

// Lacks has why an API server is known to lack a feature. Nothing is known to be missing if it is nil.
type Lacks map[Feature]string
