package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// connects are the subresources that only CONNECT reaches.
func connects() []string { return []string{"exec", "attach", "portforward", "proxy"} }

// possible reports whether there are requests of an operation for a subresource.
func possible(subresource, operation string) bool {
	switch {
	case subresource == "log": // it is only read
		return false
	case subresource == "" || hasWildcard(subresource):
		return subresource != "" || operation != "CONNECT"
	case slices.Contains(connects(), subresource):
		return operation == "CONNECT"
	case slices.Contains([]string{"eviction", "binding", "token"}, subresource):
		return operation == "CREATE"
	case slices.Contains([]string{"status", "scale", "ephemeralcontainers", "resize", "approval", "finalize"}, subresource):
		return operation == "UPDATE"
	default:
		return true
	}
}

// checkDead gives errors for rules, and for names that are wrong. A subresource that lacks its operation beside resources that
// have theirs is a warning.
func checkDead(c *checker, h *webhook) {
	if len(h.Rules) == 0 {
		if why := c.setAtRunTime(h); why != "" {
			c.inconclusive(h.configuration, fmt.Sprintf("webhook %s has no rules, and %s", h.Name, why))
			return
		}
		c.webhook(h, "rules", Finding{Severity: Error, Message: "it has no rules: it is never called"})
	}
	for i, rule := range h.Rules {
		c.deadRule(h, i, rule)
	}
}

// deadRule checks one rule.
func (c *checker) deadRule(h *webhook, index int, rule admissionregistrationv1.RuleWithOperations) {
	at := func(field string) string { return fmt.Sprintf("rules[%d].%s", index, field) }
	dead := func(field string, severity Severity, format string, arguments ...any) {
		c.webhook(h, at(field), Finding{Severity: severity, Message: fmt.Sprintf(format, arguments...)})
	}
	for i, group := range rule.APIGroups {
		if group != "*" && hasWildcard(group) {
			dead(fmt.Sprintf("apiGroups[%d]", i), Error, "%q matches no group: * only matches alone", group)
			return
		}
	}
	exempt := len(rule.Resources) > 0
	var impossible []string
	first := ""
	for i, resource := range rule.Resources {
		name, subresource, _ := strings.Cut(resource, "/")
		field := fmt.Sprintf("resources[%d]", i)
		if !c.exempt(rule.APIGroups, name) {
			exempt = false
		}
		if name != "*" && hasWildcard(name) || subresource != "*" && hasWildcard(subresource) {
			dead(field, Error, "%q matches no resource: * only matches alone, or as a whole subresource", resource)
			continue
		}
		if !slices.ContainsFunc(operations(rule), func(operation string) bool { return possible(subresource, operation) }) || c.lacks(rule.APIGroups, name, subresource) {
			if impossible = append(impossible, resource); first == "" {
				first = field
			}
			continue
		}
		c.deadResource(h, rule, at, field, resource)
	}
	switch {
	case len(impossible) == 0:
	case len(impossible) == len(rule.Resources):
		dead(first, Error, "there are no requests for %s with the operations %s", strings.Join(impossible, ", "), strings.Join(operations(rule), ", "))
	default:
		dead(first, Warning, "there are no requests for %s with the operations %s", strings.Join(impossible, ", "), strings.Join(operations(rule), ", "))
	}
	if exempt {
		dead("resources", Error, "Kubernetes never calls webhooks for %s", strings.Join(rule.Resources, ", "))
	}
}

// lacks reports whether a resource is known in a group, but has no such subresource: finalizers is one only for roles.
func (c *checker) lacks(groups []string, name, subresource string) bool {
	var known []*kinds.Resource
	for _, group := range groups {
		known = append(known, c.Find(group, name)...)
	}
	return subresource != "" && !hasWildcard(subresource) && len(known) > 0 && !slices.ContainsFunc(known, func(r *kinds.Resource) bool { return slices.Contains(r.Subresources, subresource) })
}

// exempt reports whether webhooks are never called for a resource.
func (c *checker) exempt(groups []string, name string) bool {
	if len(groups) != 1 || groups[0] == admissionregistrationv1.GroupName {
		return len(groups) == 1
	}
	return c.minor >= 37 && (groups[0] == "authorization.k8s.io" || groups[0] == "authentication.k8s.io" && slices.Contains([]string{"tokenreviews", "selfsubjectreviews"}, name))
}

// deadResource checks the name, the group and the scope of a resource.
func (c *checker) deadResource(h *webhook, rule admissionregistrationv1.RuleWithOperations, at func(string) string, field, resource string) {
	name, subresource, _ := strings.Cut(resource, "/")
	groups, lower, quoted := c.Groups(name), strings.ToLower(name), quote(rule.APIGroups)
	every := slices.Contains(rule.APIGroups, "*")
	in := func(r *kinds.Resource) bool { return every || slices.Contains(rule.APIGroups, r.Group) }
	other, named := c.Named(lower), slices.IndexFunc(c.Named(lower), in)
	served := slices.IndexFunc(rule.APIGroups, func(group string) bool { return len(c.Find(group, name)) > 0 })
	custom := every || slices.ContainsFunc(rule.APIGroups, func(group string) bool { return !kinds.IsBuiltInGroup(group) })
	scoped := rule.Scope != nil && *rule.Scope != admissionregistrationv1.AllScopes
	bad := func(severity Severity, format string, arguments ...any) {
		c.webhook(h, at(field), Finding{Severity: severity, Message: fmt.Sprintf(format, arguments...)})
	}
	switch {
	case name == "*" || every && len(groups) > 0:
	case served >= 0:
		if scoped && c.Find(rule.APIGroups[served], name)[0].Namespaced == (*rule.Scope == admissionregistrationv1.ClusterScope) {
			c.webhook(h, at("scope"), Finding{Severity: Error, Message: fmt.Sprintf("scope is %s, which %s does not have", *rule.Scope, name)})
		}
	case named >= 0:
		bad(Error, "%q is no resource but a kind or another name of %s", name, other[named].Resource)
	case lower != name:
		bad(Error, "%q is no resource: resources are in lower case and in the plural", name)
	case subresource != "" && len(groups) > 0 && !custom:
		bad(Error, "%s is a subresource of the group %s, not of %s: the group of its kind does not count", resource, quote(groups), quoted)
	case !custom || c.complete:
		bad(Note, "the API server does not serve %s in %s", name, quoted)
	case scoped && !every:
		c.inconclusive(h.configuration, fmt.Sprintf("rules with a scope name %s in %s, whose CustomResourceDefinition is not in the files", name, quoted))
	}
}
