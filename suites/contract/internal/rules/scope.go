package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// scopeRules returns the rules for resources that the plugin does not handle.
func scopeRules() []check.Rule {
	return []check.Rule{{
		ID: "S1", Name: "other-resources-are-ignored", Level: framework.Should,
		Title: "The plugin ignores resources that it is not for, including custom resources with the same name in another group: it admits them unchanged and makes no calls.",
		Why:   "Every request to the API server passes through every plugin. A plugin that compares only the name of a resource, without its group, refuses or changes custom resources of the same name.",
		Fix:   "Compare GetResource().GroupResource() with the whole group and resource.",
		Source: []string{
			"https://github.com/kubernetes/kubernetes/issues/10052",
			"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/",
		},
		Check: checkOtherResources,
	}, {
		ID: "S4", Name: "name-comes-from-the-request", Level: framework.Should,
		Title:  "The plugin uses the name of the request: if the body for a subresource has no name, the result is the same.",
		Why:    "The user was authorized for the name in the URL. Bodies of subresources, such as a TokenRequest, often have no name. A plugin that uses the name of the body then reads the wrong object.",
		Fix:    "Use GetName of the attributes. Use the name of the object only for a create of the resource itself, where GetName can be empty.",
		Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
		Check:  checkNameInBody,
	}}
}

// checkNameInBody compares the responses to creates of subresources with those to the same requests without a name in the body. API servers
// refuse updates without one, and set the namespace of each body (k8s.io/apiserver/pkg/endpoints/handlers).
func checkNameInBody(t *check.T) {
	uncalled, remove := t.Plugin(), func(object metav1.Object) { object.SetName("") }
	for _, request := range t.Requests() {
		for _, phase := range check.Phases() {
			if given, ok := t.AttributesFor(uncalled, request, phase); !ok || given.Subresource == "" || given.Operation != admission.Create || !check.WouldCall(uncalled.Plugin(), phase, given.Operation) {
				continue
			}
			send := func(without bool) (check.Response, bool) {
				h := t.Plugin()
				given, ok := t.AttributesFor(h, request, phase)
				if !ok || without && !given.EditMetadata(remove) {
					return check.Response{}, false
				}
				result, thrown := t.Call(h, given.Record(), phase)
				given.EditMetadata(remove)
				return check.Response{Result: result}, thrown == nil
			}
			expected, ok := send(false)
			if !ok {
				continue
			}
			got, ok := send(true)
			if !ok {
				continue
			}
			t.Reached()
			difference := check.Difference(expected, got)
			if difference == "" || t.Ever(func() bool {
				again, ok := send(false)
				return !ok || check.Difference(expected, again) != ""
			}) {
				continue
			}
			t.Errorf("%s, with a body without a name, in %s: %s\nwant: the plugin uses that of the attributes", request, check.MethodOf(phase), difference)
		}
	}
	if !t.HasReached() {
		t.Unsupported("the Subject has no create of a subresource")
	}
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
	mustIgnore(t, custom, effectOrCalls, "the plugin compares the group and the resource, and ignores those that are not its own")
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
