package execution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/target"
)

// deadRules returns errors for the rules of webhooks, policies and bindings that can match nothing that the API
// server serves. At is the field path of the list of manifests.
func (c *Case) deadRules(at string, manifests []map[string]any) []*scenario.Error {
	list := c.target.Optional().Resources
	if list == nil || !slices.ContainsFunc(manifests, object.IsAdmission) {
		return nil
	}
	given, written := c.groups()
	served := slices.DeleteFunc(list(), func(one metav1.APIResource) bool { // kinds of other scenarios
		return strings.Contains(one.Group, c.target.RunID()) && !slices.Contains(given, one.Group) && !slices.Contains(written, one.Group)
	})
	for _, group := range given { // of an APIService: discovery was read before
		if !(ruleJudge{served: served}).serves(group) {
			written = append(written, group)
		}
	}
	hint := "if it is to match nothing, list the name of the webhook, policy or binding in spec.matchesNothing"
	if c.Scenario.IsPolicyTest() { // a PolicyTest has no such field
		hint = ""
	}
	var problems []*scenario.Error
	for i, manifest := range manifests {
		path := fmt.Sprintf("%s[%d]", at, i)
		judge := ruleJudge{served: served, defined: written, shipped: c.Scenario.IsPolicyTest() || c.Scenario.FromFile(path)}
		for _, one := range judge.manifest(manifest, c.Scenario.Spec.MatchesNothing) {
			problems = append(problems, c.Scenario.ErrorAt(path, one.Path, fmt.Sprintf("%s: %s: %s", c.describeAt(path, manifest), one.Path, one.Message), cmp.Or(one.Hint, hint)))
		}
	}
	return problems
}

// hasStatus reports whether objects of a kind are known to have the subresource status.
func (c *Case) hasStatus(kind schema.GroupVersionKind) bool {
	list := c.target.Optional().Resources
	return list != nil && slices.ContainsFunc(list(), func(one metav1.APIResource) bool {
		return strings.HasSuffix(one.Name, "/status") && kind == schema.GroupVersionKind{Group: one.Group, Version: one.Version, Kind: one.Kind}
	})
}

// MisspeltRules returns what is wrong in a webhook configuration, policy or binding as a project ships it: in a
// webhook, policy or binding of which no rule matches something, what is nearly the name of what the API server
// serves.
func MisspeltRules(on target.Target, manifest map[string]any) []DeadRule {
	list := on.Optional().Resources
	if list == nil || !object.IsAdmission(manifest) {
		return nil
	}
	judge := ruleJudge{served: list(), shipped: true}
	return slices.DeleteFunc(judge.manifest(manifest, nil), func(one DeadRule) bool { return one.Hint == "" })
}

// ruleJudge finds rules that match nothing.
type ruleJudge struct {
	// served are the resources that the API server serves, and defined the groups that steps define.
	served  []metav1.APIResource
	defined []string
	// shipped is true for manifests as a project ships them: for several API servers, which serve different
	// resources.
	shipped bool
	// undefined is true if a rule can be for a CustomResourceDefinition that is not installed.
	undefined bool
}

// DeadRule is a rule, or a value in it, that matches nothing.
type DeadRule struct {
	// Path is its path in the manifest: "webhooks[0].rules[0].resources[0]".
	Path string
	// Message says what is wrong, and Hint what is probably meant, or "".
	Message, Hint string
}

// manifest returns what is wrong in the rules of a webhook configuration, policy or binding. Meant are the names of
// webhooks, policies and bindings that are to match nothing.
func (j ruleJudge) manifest(manifest map[string]any, meant []string) []DeadRule {
	if !object.IsAdmission(manifest) {
		return nil
	}
	var found []DeadRule
	webhooks, _ := manifest["webhooks"].([]any)
	for i, item := range webhooks {
		webhook, _ := item.(map[string]any)
		if !slices.Contains(meant, fmt.Sprint(webhook["name"])) {
			found = append(found, j.list(fmt.Sprintf("webhooks[%d].rules", i), webhook["rules"])...)
		}
	}
	metadata, _ := manifest["metadata"].(map[string]any)
	spec, _ := manifest["spec"].(map[string]any)
	for _, field := range []string{"matchConstraints", "matchResources"} {
		match, ok := spec[field].(map[string]any)
		if !ok || slices.Contains(meant, fmt.Sprint(metadata["name"])) {
			continue
		}
		found = append(found, j.list("spec."+field+".resourceRules", match["resourceRules"])...)
		if !j.shipped { // what is not served needs no exclusion
			found = append(found, j.list("spec."+field+".excludeResourceRules", match["excludeResourceRules"])...)
		}
	}
	return found
}

// list returns what is wrong in a list of rules: each rule that cannot match, and what seems to be misspelt beside
// other values. In what is shipped, one rule that can match is enough.
func (j ruleJudge) list(path string, list any) []DeadRule {
	var rules []admissionregistrationv1.Rule
	if text, err := json.Marshal(list); err != nil || json.Unmarshal(text, &rules) != nil {
		return nil // the API server has refused it
	}
	j.undefined = j.shipped || slices.ContainsFunc(rules, j.matches)
	if j.shipped && slices.ContainsFunc(rules, j.matches) {
		return nil
	}
	var found []DeadRule
	for i, rule := range rules {
		if part := j.wrong(rule); part != nil {
			part.Path = strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", path, i, part.Path), ".")
			found = append(found, *part)
		}
	}
	return found
}

// matches reports whether a rule can match something.
func (j ruleJudge) matches(rule admissionregistrationv1.Rule) bool {
	later := func(group string) bool {
		return slices.Contains(j.defined, group) || j.undefined && strings.Contains(group, ".") && !j.serves(group)
	}
	return slices.ContainsFunc(rule.APIGroups, later) || slices.ContainsFunc(j.served, func(one metav1.APIResource) bool { return covers(rule, one) })
}

func (j ruleJudge) serves(group string) bool {
	return slices.ContainsFunc(j.served, func(one metav1.APIResource) bool { return one.Group == group })
}

// covers reports whether a rule matches a resource
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go).
func covers(rule admissionregistrationv1.Rule, one metav1.APIResource) bool {
	in := func(list []string, value string) bool {
		return value == "*" || slices.Contains(list, "*") || slices.Contains(list, value)
	}
	scope := ptr.Deref(rule.Scope, admissionregistrationv1.AllScopes)
	resource, subresource, _ := strings.Cut(one.Name, "/")
	return in(rule.APIGroups, one.Group) && in(rule.APIVersions, one.Version) &&
		(scope == admissionregistrationv1.AllScopes || resource == "*" || (scope == admissionregistrationv1.NamespacedScope) == one.Namespaced) &&
		slices.ContainsFunc(rule.Resources, func(name string) bool {
			name, sub, _ := strings.Cut(name, "/")
			return in([]string{name}, resource) && in([]string{sub}, subresource)
		})
}

// wrong returns the part of a rule to blame if the rule matches nothing, or if a value in it matches nothing and
// is nearly the name of something that is served.
func (j ruleJudge) wrong(rule admissionregistrationv1.Rule) *DeadRule {
	dead := !j.matches(rule)
	if anywhere := rule; dead && rule.Scope != nil {
		if anywhere.Scope = nil; j.matches(anywhere) {
			return &DeadRule{"scope", fmt.Sprintf("the scope is %q, which no resource of the rule has; expected the scope of one of them", *rule.Scope), ""}
		}
	}
	for _, part := range []struct {
		field  string
		values *[]string
		any    string
		of     func(one metav1.APIResource) string
	}{
		{"apiVersions", &rule.APIVersions, "*", func(one metav1.APIResource) string { return one.Version }},
		{"apiGroups", &rule.APIGroups, "*", func(one metav1.APIResource) string { return one.Group }},
		{"resources", &rule.Resources, "*/*", func(one metav1.APIResource) string { return one.Name }},
	} {
		written := *part.values
		*part.values = []string{part.any}
		var names []string
		for _, one := range j.served {
			if name := part.of(one); one.Name != "*/*" && covers(rule, one) && !strings.Contains(name, "*") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		for i, value := range written {
			*part.values = []string{value}
			near := suggest.Nearest(value, names)
			misspelt := near != "" && !slices.Contains(written, near) && part.field != "apiVersions"
			if !j.matches(rule) && (misspelt || dead && len(names) > 0) {
				return &DeadRule{fmt.Sprintf("%s[%d]", part.field, i), nothing(part.field, value, names), strings.TrimPrefix(suggest.DidYouMean(value, names), "; ")}
			}
		}
		*part.values = written
	}
	if dead {
		return &DeadRule{"", "the API server serves nothing that the rule matches; expected a resource that it serves, in a group and version that it has", ""}
	}
	return nil
}

// nothing says that a value of a rule matches nothing, and with which values the rule would match.
func nothing(field, value string, names []string) string {
	const few = 5
	expected := "one that it serves"
	if len(names) <= few {
		expected = fmt.Sprintf("one of %q", names)
	}
	return fmt.Sprintf("the rule matches nothing that the API server serves, because of %q in %s; expected %s", value, field, expected)
}
