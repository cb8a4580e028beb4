package fence

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Kinds are the kinds of object that a fence is for. Namespaces are those whose labels changed: a
// namespace that is new is read from the API server, but of one that it knows selectors and policies
// can see old labels.
type Kinds struct{ MutatingWebhooks, ValidatingWebhooks, ValidatingPolicies, MutatingPolicies, Namespaces bool }

// KindsOf returns the kinds of manifests.
func KindsOf(manifests []map[string]any) Kinds {
	var found Kinds
	for _, manifest := range manifests {
		kind, err := object.Kind(manifest)
		if err == nil && kind.Group == "" && kind.Kind == "Namespace" {
			found.Namespaces = true
		}
		if err != nil || kind.Group != install.AdmissionGroup {
			continue
		}
		switch kind.Kind {
		case install.KindMutatingWebhooks:
			found.MutatingWebhooks = true
		case install.KindValidatingWebhooks:
			found.ValidatingWebhooks = true
		case install.KindValidatingPolicy, install.KindValidatingBinding:
			found.ValidatingPolicies = true
		case install.KindMutatingPolicy, install.KindMutatingBinding:
			found.MutatingPolicies = true
		}
	}
	return found
}

// markAnnotation is the mark of the sentinel of mutating policies, with the nonce of the fence. The mark of the sentinel of
// validating policies is a warning, and that of webhooks their call.
const markAnnotation = "fence-map"

// sentinelSuffix is the end of the names of the webhooks of sentinels.
const sentinelSuffix = ".admissiontest-fence"

// sentinels returns the manifests of a fence.
func (f *fence) sentinels() []map[string]any {
	var out []map[string]any
	for _, phase := range f.phases() {
		webhook := map[string]any{"name": f.webhook(phase), "rules": f.rules(), "timeoutSeconds": int64(5)}
		if f.label != "" {
			webhook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": f.label, "operator": "Exists"}}}
		}
		kind := install.KindValidatingWebhooks
		if phase == framework.Mutating {
			kind = install.KindMutatingWebhooks
		}
		out = append(out, map[string]any{"apiVersion": install.AdmissionGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": f.nonce}, "webhooks": []any{webhook}})
	}
	if f.kinds.ValidatingPolicies {
		out = append(out, manifest(install.KindValidatingPolicy, f.nonce, map[string]any{
			"matchConstraints": map[string]any{"resourceRules": f.rules()},
			"validations":      []any{map[string]any{"expression": "false", "message": f.warning()}},
		}), manifest(install.KindValidatingBinding, f.nonce, map[string]any{"policyName": f.nonce, "validationActions": []any{"Warn"}}))
	}
	if f.kinds.MutatingPolicies {
		out = append(out, manifest(install.KindMutatingPolicy, f.nonce, map[string]any{
			"matchConstraints": map[string]any{"resourceRules": f.rules()}, "reinvocationPolicy": "Never", "failurePolicy": "Ignore",
			"mutations": []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
				"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {%q: %q}}}`, markAnnotation, f.nonce),
			}}},
		}), manifest(install.KindMutatingBinding, f.nonce, map[string]any{"policyName": f.nonce}))
	}
	return out
}

func manifest(kind, name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": install.AdmissionGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
}

// phases returns the phases that have a webhook.
func (f *fence) phases() []framework.Phase {
	var all []framework.Phase
	if f.kinds.MutatingWebhooks {
		all = append(all, framework.Mutating)
	}
	if f.kinds.ValidatingWebhooks {
		all = append(all, framework.Validating)
	}
	return all
}

func (f *fence) webhook(phase framework.Phase) string {
	return f.nonce + "." + string(phase) + sentinelSuffix
}

func (f *fence) warning() string { return "fence policy " + f.nonce }

// deniedByPolicy reports whether a ValidatingAdmissionPolicy refused a request. All of them are evaluated before that, so
// the warnings of the others have arrived.
func deniedByPolicy(answer framework.Result) bool {
	return strings.Contains(answer.Status.Message, ": ValidatingAdmissionPolicy '") && strings.Contains(answer.Status.Message, " denied request: ")
}

// missing returns the sentinels that left no mark on a dry-run request with a response and calls of Hooks, or "".
func (f *fence) missing(answer framework.Result, calls framework.Trace) string {
	if !answer.Allowed() && !deniedByPolicy(answer) {
		return fmt.Sprintf("all: the API server refused the dry-run request: %s", answer.Status.Message)
	}
	var missing []string
	for _, phase := range f.phases() {
		if !slices.ContainsFunc(calls, func(call framework.Call) bool {
			name, _, _ := unstructured.NestedString(call.Request(), "object", "metadata", "name")
			return call.Webhook == f.webhook(phase) && name == f.probe() // not that of another fence
		}) {
			missing = append(missing, fmt.Sprintf("fence %s %s", phase, f.nonce))
		}
	}
	if f.kinds.ValidatingPolicies && !slices.ContainsFunc(answer.Warnings, func(warning string) bool { return strings.HasSuffix(warning, f.warning()) }) {
		missing = append(missing, f.warning())
	}
	annotation, _, _ := unstructured.NestedString(answer.Fields(), "metadata", "annotations", markAnnotation)
	if f.kinds.MutatingPolicies && annotation != f.nonce {
		missing = append(missing, "fence mutating policy")
	}
	return strings.Join(missing, ", ")
}
