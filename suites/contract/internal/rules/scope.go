package rules

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scopeRules returns the rules for resources that are not those of the plugin.
func scopeRules() []check.Rule {
	return []check.Rule{{
		ID: "S1", Name: "other-resources-are-ignored", Level: framework.Should,
		Title: "The plugin ignores resources that are not its own, including custom resources of the same name in another group: it admits them unchanged and makes no call.",
		Why:   "Every request to the API server passes through every plugin. A plugin that compares only the name of a resource, without its group, refuses or changes custom resources of the same name.",
		Source: []string{
			"https://github.com/kubernetes/kubernetes/issues/10052",
			"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/",
		},
		Check: checkOtherResources,
	}}
}

func checkOtherResources(t *check.T) {
	custom := func(h *harness.Harness, request framework.Request, _ framework.Phase) []check.Variant {
		all := []check.Variant{unknownResource(t, h, request)}
		if a, ok := t.AttributesFor(h, request, framework.Mutating); ok {
			sameName := schema.GroupVersionResource{Group: foreignGroup, Version: a.Resource.Version, Resource: a.Resource.Resource}
			all = append(all, customResource(t, h, request, sameName, a.Kind.Kind))
		}
		return all
	}
	mustIgnore(t, custom, effectOrCalls)
}

// effectOrCalls is check.Effect, and includes reads by a client.
func effectOrCalls(result harness.Result) string {
	if effect := check.Effect(result); effect != "" {
		return effect
	}
	if len(result.Calls) > 0 {
		return "made calls:\n" + result.Calls.String()
	}
	return ""
}
