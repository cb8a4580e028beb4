package fence

import (
	"fmt"

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

// The mark of the sentinel of mutating policies is an annotation; the marks of the others
// are warnings.
const (
	mutatingPolicyMark = "fence mutating policy"
	markAnnotation     = "fence-map"
)

// sentinelSuffix is the end of the names of the webhooks of sentinels.
const sentinelSuffix = ".admissiontest-fence"

// denyLabel is the label of a request that a sentinel denies, with its nonce.
const denyLabel = "admissiontest.dev/fence"

// markOf returns the mark of the sentinel with a webhook, or "".
func (f *fence) markOf(webhook string) string {
	for _, phase := range []framework.Phase{framework.Mutating, framework.Validating} {
		if webhook == f.webhook(phase) {
			return f.mark(string(phase))
		}
	}
	return ""
}

func (f *fence) webhook(phase framework.Phase) string {
	return f.nonce + "." + string(phase) + sentinelSuffix
}

func (f *fence) mark(who string) string { return "fence " + who + " " + f.nonce }

// sentinels returns the manifests of a fence and sets the marks that they leave.
func (f *fence) sentinels(kinds Kinds) []map[string]any {
	var out []map[string]any
	if kinds.MutatingWebhooks {
		out = append(out, f.webhookSentinel(install.KindMutatingWebhooks, framework.Mutating))
	}
	if kinds.ValidatingWebhooks {
		out = append(out, f.webhookSentinel(install.KindValidatingWebhooks, framework.Validating))
	}
	if kinds.ValidatingPolicies {
		constraints, action := map[string]any{"resourceRules": f.rules()}, "Warn"
		if f.denies = f.features.NoWarnings; f.denies {
			constraints["objectSelector"], action = map[string]any{"matchLabels": map[string]any{denyLabel: f.nonce}}, "Deny"
		} else {
			f.marks = append(f.marks, f.mark("policy"))
		}
		out = append(out, manifest(install.KindValidatingPolicy, f.nonce, map[string]any{
			"matchConstraints": constraints,
			"validations":      []any{map[string]any{"expression": "false", "message": f.mark("policy")}},
		}), manifest(install.KindValidatingBinding, f.nonce, map[string]any{"policyName": f.nonce, "validationActions": []any{action}}))
	}
	if kinds.MutatingPolicies {
		f.marks = append(f.marks, mutatingPolicyMark)
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

func (f *fence) webhookSentinel(kind string, phase framework.Phase) map[string]any {
	f.marks = append(f.marks, f.mark(string(phase)))
	webhook := map[string]any{"name": f.webhook(phase), "rules": f.rules(), "timeoutSeconds": int64(5)}
	if f.label != "" {
		webhook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": f.label, "operator": "Exists"}}}
	}
	return map[string]any{"apiVersion": install.AdmissionGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": f.nonce}, "webhooks": []any{webhook}}
}
