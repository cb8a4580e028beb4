package install

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// probesCondition is the name of the match condition that withoutProbes adds.
const probesCondition = "admissiontest.dev/probes"

// withoutProbes returns a copy of a webhook configuration or policy that is not narrowed, but does
// not match the requests by which a run finds out what the API server acts on: the creation of
// ConfigMaps in namespaces of the run that no scenario uses, and updates of these namespaces. One whose
// rules do not match these remains as it is. A match condition does not change what a selector
// matches.
func (i *Installer) withoutProbes(kind schema.GroupVersionKind, manifest map[string]any) map[string]any {
	without := func(object map[string]any, rules []any) map[string]any {
		if !slices.ContainsFunc(rules, matchesProbe) {
			return object
		}
		out := maps.Clone(object)
		out["matchConditions"] = append(slices.Clone(asList(out["matchConditions"])), map[string]any{
			"name":       probesCondition,
			"expression": fmt.Sprintf(`!(has(request.namespace) && request.namespace.matches(%q))`, "^"+regexp.QuoteMeta(runid.Prefix(i.Run))+"-(fence|reach|ready)$"),
		})
		return out
	}
	out := maps.Clone(manifest)
	switch kind.Kind {
	case KindMutatingWebhooks, KindValidatingWebhooks:
		var webhooks []any
		for _, item := range asList(manifest["webhooks"]) {
			if webhook, ok := item.(map[string]any); ok {
				item = without(webhook, asList(webhook["rules"]))
			}
			webhooks = append(webhooks, item)
		}
		if webhooks != nil {
			out["webhooks"] = webhooks
		}
	case KindValidatingPolicy, KindMutatingPolicy:
		if spec, ok := manifest["spec"].(map[string]any); ok {
			out["spec"] = without(spec, asList(cloneMap(spec["matchConstraints"])["resourceRules"]))
		}
	}
	return out
}

// matchesProbe reports whether a rule can match the creation of a ConfigMap or the update of a
// Namespace.
func matchesProbe(item any) bool {
	rule, _ := item.(map[string]any)
	has := func(field string, values ...string) bool {
		return slices.ContainsFunc(texts(rule[field]), func(text string) bool { return slices.Contains(values, text) })
	}
	creation := rule["scope"] != "Cluster" && has("operations", "*", "CREATE") && has("resources", "*", "*/*", "configmaps")
	update := rule["scope"] != "Namespaced" && has("operations", "*", "UPDATE") && has("resources", "*", "*/*", "namespaces")
	return (creation || update) && has("apiGroups", "*", "")
}

// nameOf returns the name on the API server of an object that a scenario calls by this name.
func (s *Scope) nameOf(kind schema.GroupVersionKind, name string) string {
	if IsAdmission(kind) && !s.Open {
		return s.ID + "-" + name
	}
	return name
}

// note notes an object for Uninstall.
func (s *Scope) note(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installed = append(s.installed, o)
}

// noteOutside notes an object that an Open scenario has created outside of its namespaces, where
// the next scenario would find it. It does not note a namespace: without a namespace controller, a
// deleted namespace continues to exist and cannot be used.
func (s *Scope) noteOutside(o client.Object) {
	own := runid.Has(o.Namespace, s.ID) || o.Namespace == "" && runid.Has(o.Name, s.ID)
	if s.Open && (!own || o.Resource.Group == AdmissionGroup) && o.Resource.GroupVersionResource != client.Namespaces() && o.Resource.Resource != "customresourcedefinitions" {
		s.note(o)
	}
}
