package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// remarked is a right that an operator has to know about.
type remarked struct {
	group, resource string
	// verbs restricts the remark to rules with one of these verbs. Empty means all verbs.
	verbs []string
	text  string
	// full is true if the account can become an administrator with this right.
	full bool
}

const admissionGroup = "admissionregistration.k8s.io"

// remarks are the rights to know about, the strongest first.
func remarks() []remarked {
	create, workload := []string{"create"}, "Pods in every namespace. A pod can use all Secrets and ServiceAccounts of its namespace, and, unless Pod Security forbids it, the node."
	webhooks := "A webhook can read and change requests. A run narrows each webhook to its own namespaces; docs/confine.yaml enforces that."
	inPods := "Commands in, and connections to, the pods in every namespace."
	return []remarked{
		{group: "", resource: "nodes/proxy", full: true, text: "The kubelet's API, with which commands can be run in every pod of a node."},
		{group: "", resource: "serviceaccounts/token", verbs: create, full: true, text: "Tokens of the ServiceAccounts in every namespace."},
		{group: "", resource: "secrets", verbs: []string{"get", "list"}, full: true, text: "Reads the Secrets in every namespace, including tokens of ServiceAccounts."},
		{group: "", resource: "secrets", verbs: create, text: "Creates Secrets, but cannot read them. A Secret can request a token of a ServiceAccount."},
		{group: "", resource: "pods", verbs: create, text: workload},
		{group: "apps", resource: "*", verbs: create, text: workload},
		{group: "batch", resource: "*", verbs: create, text: workload},
		{group: "", resource: "podtemplates", text: "Only templates; no pod is created from them."},
		{group: "", resource: "pods/exec", text: inPods}, {group: "", resource: "pods/attach", text: inPods},
		{group: "", resource: "pods/portforward", text: inPods}, {group: "", resource: "pods/ephemeralcontainers", text: inPods},
		{group: "", resource: "pods/proxy", text: inPods}, {group: "", resource: "services/proxy", text: inPods},
		{group: admissionGroup, resource: "mutatingwebhookconfigurations", text: webhooks}, {group: admissionGroup, resource: "validatingwebhookconfigurations", text: webhooks},
		{group: admissionGroup, resource: "*", text: "A policy can refuse and change requests of other clients. A run narrows its policies to its own namespaces, but docs/confine.yaml cannot enforce that: with this right, its own policies can be deleted."},
		{group: "apiextensions.k8s.io", resource: "*", text: "The definitions of all custom resources. If a definition is deleted, its objects are deleted too."},
		{group: "rbac.authorization.k8s.io", resource: "*", text: "Without the verbs escalate and bind, so a new role can only grant rights that the account has."},
		{group: "certificates.k8s.io", resource: "signers", text: "For a signer that does not exist."},
		{group: "*", resource: "*", text: "The API group of these custom resources contains the ID of the run, so a rule cannot name it."},
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
		return "For any user or group, because a scenario has a placeholder in the name." + warning(true)
	case slices.Contains(rule.ResourceNames, "system:masters"):
		return "Members of system:masters may do anything." + warning(true)
	case slices.Contains(rule.ResourceNames, "system:nodes"):
		return "By default the group system:nodes has no rights unless the user has the name of a node."
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
