package execution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
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
			problems = append(problems, one.in(c.errorsOf(path, manifest), hint))
		}
	}
	return problems
}

// in returns the error of a rule of a manifest.
func (d deadRule) in(m expect.Manifest, hint string) *scenario.Error {
	return m.At(d.path, fmt.Sprintf("%s: %s: %s", m.Name, d.path, d.message), cmp.Or(d.hint, hint))
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
func MisspeltRules(on target.Target, m expect.Manifest) []error {
	list := on.Optional().Resources
	if list == nil {
		return nil
	}
	var errs []error
	for _, one := range (ruleJudge{served: list(), shipped: true}).manifest(m.Object, nil) {
		if one.hint != "" {
			errs = append(errs, one.in(m, ""))
		}
	}
	return errs
}

// Configuration is the part of a webhook configuration, policy or binding that says for which requests it is.
type Configuration struct {
	Webhooks []struct {
		Name              string
		Rules             []admissionregistrationv1.RuleWithOperations
		NamespaceSelector *metav1.LabelSelector
	}
	Spec struct {
		MatchConstraints, MatchResources *admissionregistrationv1.MatchResources
		ParamRef                         *admissionregistrationv1.ParamRef
	}
}

// ReadConfiguration returns the Configuration of a manifest. It is an error if the API server would refuse the manifest.
func ReadConfiguration(manifest map[string]any) (Configuration, error) {
	var read Configuration
	text, err := json.Marshal(manifest)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	return read, err
}

// rulesOf returns the rules in a list of named ones.
func rulesOf(named []admissionregistrationv1.NamedRuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	var all []admissionregistrationv1.RuleWithOperations
	for _, one := range named {
		all = append(all, one.RuleWithOperations)
	}
	return all
}

// Decides reports whether a rule of a webhook or policy is for a resource.
func (c Configuration) Decides(one metav1.APIResource) bool {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, webhook := range c.Webhooks {
		rules = append(rules, webhook.Rules...)
	}
	if match := c.Spec.MatchConstraints; match != nil {
		rules = append(rules, rulesOf(match.ResourceRules)...)
	}
	return slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return covers(rule.Rule, one) })
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

// deadRule is a rule, or a value in it, that matches nothing: its path in the manifest,
// "webhooks[0].rules[0].resources[0]", what is wrong, and what is probably meant, or "".
type deadRule struct{ path, message, hint string }

// manifest returns what is wrong in the rules of a webhook configuration, policy or binding. Meant are the names of
// webhooks, policies and bindings that are to match nothing.
func (j ruleJudge) manifest(manifest map[string]any, meant []string) []deadRule {
	read, err := ReadConfiguration(manifest)
	if err != nil || !object.IsAdmission(manifest) {
		return nil // the API server has refused it
	}
	var found []deadRule
	for i, webhook := range read.Webhooks {
		if !slices.Contains(meant, webhook.Name) {
			found = append(found, j.list(fmt.Sprintf("webhooks[%d].rules", i), webhook.Rules)...)
		}
	}
	if slices.Contains(meant, (&unstructured.Unstructured{Object: manifest}).GetName()) {
		return found
	}
	for field, match := range map[string]*admissionregistrationv1.MatchResources{"matchConstraints": read.Spec.MatchConstraints, "matchResources": read.Spec.MatchResources} {
		if match == nil {
			continue
		}
		found = append(found, j.list("spec."+field+".resourceRules", rulesOf(match.ResourceRules))...)
		if !j.shipped { // what is not served needs no exclusion
			found = append(found, j.list("spec."+field+".excludeResourceRules", rulesOf(match.ExcludeResourceRules))...)
		}
	}
	return found
}

// list returns what is wrong in a list of rules: each rule that cannot match, and what seems to be misspelt beside
// other values. In what is shipped, one rule that can match is enough.
func (j ruleJudge) list(path string, rules []admissionregistrationv1.RuleWithOperations) []deadRule {
	someMatch := slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return j.matches(rule.Rule) })
	j.undefined = j.shipped || someMatch
	if j.shipped && someMatch {
		return nil
	}
	var found []deadRule
	for i, rule := range rules {
		if part := j.wrong(rule.Rule); part != nil {
			part.path = strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", path, i, part.path), ".")
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
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go). What is "*" in the resource can be anything.
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
func (j ruleJudge) wrong(rule admissionregistrationv1.Rule) *deadRule {
	dead := !j.matches(rule)
	for _, part := range []struct {
		field  string
		values *[]string
		any    string
		of     func(one metav1.APIResource) string
	}{
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
		for i, value := range written {
			*part.values = []string{value}
			if near := suggest.Nearest(value, names); near != "" && !slices.Contains(written, near) && !j.matches(rule) {
				return &deadRule{fmt.Sprintf("%s[%d]", part.field, i), fmt.Sprintf("the rule matches nothing that the API server serves, because of %q in %s", value, part.field),
					strings.TrimPrefix(suggest.DidYouMean(value, names), "; ")}
			}
		}
		*part.values = written
	}
	if dead {
		return &deadRule{"", "the API server serves nothing that the rule matches; expected a resource that it serves, in a group, version and scope that it has", ""}
	}
	return nil
}
