package contract

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// scopeProperties returns the properties of this file.
func scopeProperties() []Property {
	return []Property{{
		ID: "S1", Level: framework.Should,
		Title: "What is not its own it leaves alone: custom resources, one of the same name in another group among them, are admitted as they are, without a call.",
		Why:   "Every request to the server passes each plugin: one that goes by the name of a resource, without its group, refuses or changes what somebody else has called the same.",
		Source: []string{
			"https://github.com/kubernetes/kubernetes/issues/10052",
			"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/",
		},
		Check: func(t *Trial) { t.leavesAlone(t.foreignResources, touched) },
	}}
}

// foreignResources makes requests to resources that are not the plugin's.
func (t *Trial) foreignResources(h *harness.Harness, request framework.Request) []variation {
	all := []variation{t.unknownResource(h, request)}
	if f, ok := t.attributes(h, request, framework.Mutating); ok {
		namesake := schema.GroupVersionResource{Group: foreignGroup, Version: f.resource.Version, Resource: f.resource.Resource}
		all = append(all, t.foreign(h, request, namesake, f.kind.Kind))
	}
	return all
}

// touched is acted, and reading by a client as well.
func touched(result harness.Result) string {
	if did := acted(result); did != "" {
		return did
	}
	if len(result.Calls) > 0 {
		return "called:\n" + result.Calls.String()
	}
	return ""
}
