package builtin

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Stored returns copies of webhook configurations, policies and bindings with the defaults that an
// API server sets when it stores them. Without these defaults the plugins behave differently: for
// example, a webhook without a namespaceSelector is never called. An object of another kind ends
// the test.
//
//	fakes.WithObjects(builtin.Stored(t, policy, binding)...)
func Stored(t framework.T, given ...runtime.Object) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for at, object := range given {
		made, err := stored(object)
		if err != nil {
			t.Fatalf("set defaults of object %d: %v", at+1, err)
			return nil
		}
		all = append(all, made)
	}
	return all
}

func stored(object runtime.Object) (runtime.Object, error) {
	if objects.IsNil(object) {
		return nil, fmt.Errorf("it is nil: give a webhook configuration, a policy or a binding")
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	spec, _ := fields["spec"].(map[string]any)
	switch kind := kinds[0].Kind; kind {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for _, webhook := range items(fields["webhooks"]) {
			setWebhook(webhook, kind)
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		set(spec, "failurePolicy", "Fail")
		setMatch(spec["matchConstraints"])
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		setMatch(spec["matchResources"])
	default:
		return nil, fmt.Errorf("it is a %s: give a webhook configuration, a policy or a binding", kind)
	}
	made, err := scheme.Scheme.New(kinds[0])
	if err != nil {
		return nil, err
	}
	return made, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, made)
}

// setWebhook sets the defaults of a webhook
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/).
func setWebhook(webhook map[string]any, kind string) {
	set(webhook, "failurePolicy", "Fail")
	set(webhook, "timeoutSeconds", int64(10))
	if kind == "MutatingWebhookConfiguration" {
		set(webhook, "reinvocationPolicy", "Never")
	}
	setSelectors(webhook)
	setScopes(webhook["rules"])
}

// setMatch sets the defaults of the MatchResources of a policy or a binding.
func setMatch(resources any) {
	match, ok := resources.(map[string]any)
	if !ok {
		return
	}
	setSelectors(match)
	setScopes(match["resourceRules"])
	setScopes(match["excludeResourceRules"])
}

func setSelectors(of map[string]any) {
	set(of, "matchPolicy", "Equivalent")
	set(of, "namespaceSelector", map[string]any{})
	set(of, "objectSelector", map[string]any{})
}

func setScopes(rules any) {
	for _, rule := range items(rules) {
		set(rule, "scope", "*")
	}
}

// set sets a field that is not set.
func set(fields map[string]any, name string, value any) {
	if _, ok := fields[name]; !ok && fields != nil {
		fields[name] = value
	}
}

func items(list any) []map[string]any {
	var all []map[string]any
	given, _ := list.([]any)
	for _, one := range given {
		if fields, ok := one.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}
