package target

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
	// Selectors are label selectors of lists and deletions.
	Selectors Feature = "label selectors"
	// DeleteCollection deletes several objects in one request.
	DeleteCollection Feature = "deletecollection"
)

// Features returns the features that are probed, besides AdmissionOf.
func Features() []Feature {
	return []Feature{Narrowing, Warnings, Impersonation, Selectors, DeleteCollection}
}

const admissionOf = "admission of "

// AdmissionOf is the feature that webhooks are called for objects of a kind.
func AdmissionOf(kind schema.GroupKind) Feature { return Feature(admissionOf + kind.String()) }

// Lacks has why an API server is known to lack a feature. Nothing is known to be missing if it is nil.
type Lacks map[Feature]string

// Admission returns the features of AdmissionOf, sorted.
func (l Lacks) Admission() []Feature {
	return slices.Sorted(func(yield func(Feature) bool) {
		for feature := range maps.Keys(l) {
			if strings.HasPrefix(string(feature), admissionOf) && !yield(feature) {
				return
			}
		}
	})
}
