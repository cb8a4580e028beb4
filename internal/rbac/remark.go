package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// remarked is a right that an operator has to know about.
type remarked struct {
	group, resource string
	// verbs restricts it to rules with one of these verbs. Empty means any.
	verbs []string
	text  string
	// full is true if the account can become an administrator by it.
	full bool
}

const admissionGroup = "admissionregistration.k8s.io"

// remarks are the rights to know about, the strongest first.
func remarks() []remarked {
	create, workload := []string{"create"}, "Pods in every namespace. A pod can use each Secret and ServiceAccount of its namespace, and the node, unless Pod Security forbids that."
	webhooks := "A webhook sees and changes requests. A run narrows each to its own namespaces, and with docs/confine.yaml the API server requires that."
	inPods := "Commands and connections into the pods of every namespace."
	return []remarked{
		{group: "", resource: "nodes/proxy", full: true, text: "The kubelet's API: commands in every pod of a node."},
		{group: "", resource: "serviceaccounts/token", verbs: create, full: true, text: "Tokens of the ServiceAccounts of every namespace."},
		{group: "", resource: "secrets", verbs: []string{"get", "list"}, full: true, text: "Reads the Secrets of every namespace, tokens of ServiceAccounts among them."},
		{group: "", resource: "secrets", verbs: create, text: "Creates Secrets, and cannot read them. A token of a ServiceAccount can be requested by one."},
		{group: "", resource: "pods", verbs: create, text: workload},
		{group: "apps", resource: "*", verbs: create, text: workload},
		{group: "batch", resource: "*", verbs: create, text: workload},
		{group: "", resource: "podtemplates", text: "Templates only: no pod is created."},
		{group: "", resource: "pods/exec", text: inPods}, {group: "", resource: "pods/attach", text: inPods},
		{group: "", resource: "pods/portforward", text: inPods}, {group: "", resource: "pods/ephemeralcontainers", text: inPods},
		{group: "", resource: "pods/proxy", text: inPods}, {group: "", resource: "services/proxy", text: inPods},
		{group: admissionGroup, resource: "mutatingwebhookconfigurations", text: webhooks}, {group: admissionGroup, resource: "validatingwebhookconfigurations", text: webhooks},
		{group: admissionGroup, resource: "*", text: "A policy refuses and changes the requests of other clients, unless it is narrowed, as those of a run are. docs/confine.yaml cannot confine this right, and can be removed by it."},
		{group: "apiextensions.k8s.io", resource: "*", text: "The definitions of every custom resource. With a definition its objects are deleted."},
		{group: "rbac.authorization.k8s.io", resource: "*", text: "Without the verbs escalate and bind: a new role grants only what the account has."},
		{group: "certificates.k8s.io", resource: "signers", text: "Of a signer that does not exist."},
		{group: "*", resource: "*", text: "The group of these custom resources has the ID of the run in its name, which a rule cannot name."},
		{group: "", resource: "namespaces", text: "The names of a run's namespaces are random, so the right is for all namespaces."},
	}
}

// remark returns what an operator has to know about a rule, or "". All resources of the
// rule have the same remark.
func remark(rule rbacv1.PolicyRule) string {
	if slices.Contains(rule.Verbs, "impersonate") {
		return impersonation(rule)
	}
	for _, one := range remarks() {
		if one.matches(rule) {
			return strings.TrimSpace(one.text + warning(one.full))
		}
	}
	return ""
}

// impersonation is the remark about a rule with the verb impersonate.
func impersonation(rule rbacv1.PolicyRule) string {
	all := len(rule.ResourceNames) == 0 && slices.ContainsFunc(rule.Resources, func(name string) bool { return name == "users" || name == "groups" })
	switch {
	case all:
		return "Any user or group, because a scenario has a placeholder in the name." + warning(true)
	case slices.Contains(rule.ResourceNames, "system:masters"):
		return "Members of system:masters may do anything." + warning(true)
	case slices.Contains(rule.ResourceNames, "system:nodes"):
		return "By default the group system:nodes grants nothing without the name of a node."
	}
	return ""
}

// asAdministrator ends the remark about a right by which the account can become an
// administrator.
const asAdministrator = "AS MUCH AS cluster-admin."

func warning(full bool) string {
	if full {
		return " " + asAdministrator
	}
	return ""
}

func (r remarked) matches(rule rbacv1.PolicyRule) bool {
	has := func(list []string, wanted string) bool { return slices.Contains(list, wanted) }
	return len(rule.NonResourceURLs) == 0 && has(rule.APIGroups, r.group) && (r.resource == "*" || has(rule.Resources, r.resource)) &&
		(len(r.verbs) == 0 || slices.ContainsFunc(r.verbs, func(verb string) bool { return has(rule.Verbs, verb) }))
}
