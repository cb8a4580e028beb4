package rights

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// Required are the rights of a run as far as they are known without an API server.
type Required struct {
	// Run are the rights that every run needs, without the rights of the transport.
	Run []client.Right
	// Scenarios are the rights that the scenarios need besides Run. A name or group that
	// is not known before the run is missing or "*".
	Scenarios []client.Right
	// Unknown are the kinds that Kubernetes does not serve by default and that no
	// CustomResourceDefinition of the scenarios defines. Their rights are missing.
	Unknown []schema.GroupVersionKind
}

// Of returns the rights that Check checks. The resources are the resources of Kubernetes and of
// the CustomResourceDefinitions of the scenarios.
func Of(needs []Need) Required {
	resources := BuiltIn()
	var required Required
	for right, who := range wanted(resources, needs) {
		if len(who) == 0 {
			required.Run = append(required.Run, right)
		} else {
			required.Scenarios = append(required.Scenarios, beforehand(right))
		}
	}
	required.Run, required.Scenarios = sorted(required.Run), sorted(required.Scenarios)
	all := slices.Concat(required.Run, required.Scenarios)
	required.Scenarios = slices.DeleteFunc(required.Scenarios, func(right client.Right) bool {
		return slices.ContainsFunc(all, func(other client.Right) bool { return other != right && covers(other, right) })
	})
	for _, need := range needs {
		for _, request := range need.Requests {
			if _, err := resources.Of(request.Kind); err != nil && !slices.Contains(required.Unknown, request.Kind) {
				required.Unknown = append(required.Unknown, request.Kind)
			}
		}
	}
	return required
}

// placeholder begins a placeholder of a scenario.
const placeholder = "$("

// beforehand returns the right without the names that are not known before the run.
func beforehand(right client.Right) client.Right {
	for _, text := range []*string{&right.Group, &right.Resource} {
		if strings.Contains(*text, placeholder) {
			*text = "*"
		}
	}
	if strings.Contains(right.Name, placeholder) {
		right.Name = ""
	}
	if known, _, found := strings.Cut(right.Path, placeholder); found {
		right.Path = known + "*"
	}
	return right
}

// covers reports whether the first right includes the second.
func covers(wide, narrow client.Right) bool {
	return wide.Verb == narrow.Verb && wide.Path == narrow.Path && wide.Subresource == narrow.Subresource &&
		(wide.Group == narrow.Group || wide.Group == "*") && (wide.Resource == narrow.Resource || wide.Resource == "*") &&
		(wide.Name == narrow.Name || wide.Name == "") && (wide.Namespace == narrow.Namespace || wide.Namespace == "")
}

func sorted(list []client.Right) []client.Right {
	slices.SortFunc(list, func(a, b client.Right) int {
		return cmp.Or(
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb),
		)
	})
	return slices.Compact(list)
}
