package client

import (
	_ "embed"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kinds are the kinds that a kube-apiserver serves by default. A line has the group and
// version, the kind, the resource, "namespaced" or "cluster", and "delete" for
// resources whose collections can be deleted. A test compares it with an API server and
// writes it with -update.
//
//go:embed kinds.tsv
var kinds string

// BuiltIn returns the resources of a kube-apiserver, without CustomResourceDefinitions.
func BuiltIn() *Resources {
	resources := NewResources()
	for line := range strings.Lines(kinds) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		resource := metav1.APIResource{Kind: cells[1], Name: cells[2], Namespaced: cells[3] == scope(true)}
		if cells[4] != "" {
			resource.Verbs = metav1.Verbs{"list", cells[4]}
		}
		resources.Add(&metav1.APIResourceList{GroupVersion: cells[0], APIResources: []metav1.APIResource{resource}})
	}
	return resources
}

func scope(namespaced bool) string {
	if namespaced {
		return "namespaced"
	}
	return "cluster"
}
