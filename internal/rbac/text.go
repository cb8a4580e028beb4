package rbac

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// String returns the manifest as YAML, with comments: the ServiceAccount and its
// namespace, the roles, and their bindings.
func (m Manifest) String() string {
	var text strings.Builder
	text.WriteString(m.head())
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", m.Namespace)
	fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n", m.Account, m.Namespace)
	for _, role := range m.Roles {
		fmt.Fprintf(&text, "---\n%sapiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: %s\nrules:\n", comment("", role.About), role.kind(), role.metadata())
		last := ""
		for _, rule := range role.Rules {
			if now := remark(rule); now != last {
				text.WriteString(comment("  ", now))
				last = now
			}
			text.WriteString("  - " + flow(rule) + "\n")
		}
	}
	for _, role := range m.Roles {
		fmt.Fprintf(&text, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata: %s\n", role.kind(), role.metadata())
		fmt.Fprintf(&text, "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\n", role.kind(), role.Name)
		fmt.Fprintf(&text, "subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]\n", m.Account, m.Namespace)
	}
	return text.String()
}

// header begins the manifest. It has the account and its namespace.
const header = `# The rights that a run needs on an existing cluster, and no others. "admissiontest rbac"
# wrote this file. To use it:
#
#   kubectl apply -f FILE
#   kubectl create token %s --namespace %s --duration 2h
#
# and write a kubeconfig with that token. If a right is missing, the run ends before it
# creates anything, and names the right. Delete the bindings after the run.
#
# The rights are for all namespaces, because RBAC cannot name the namespaces of a run
# (at-RUN-00001 and so on). docs/confine.yaml limits what the account creates, changes and
# deletes to the namespaces and names of runs. It cannot limit what the account reads.
#
# An account that can write webhook configurations can send the requests of every client to
# a webhook. A run narrows each webhook to its own namespaces; docs/confine.yaml enforces
# that.
#
`

// faster ends the comment at the beginning.
const faster = `# Optional, to save time: with the right to list everything
# ({apiGroups: ["*"], resources: ["*"], verbs: [list]}) a run can check that its namespaces
# are empty, and then removes them at once. Without this right, the namespace controller
# removes them, which takes a minute or two for hundreds of namespaces.
`

// head returns the comment at the beginning of the manifest.
func (m Manifest) head() string {
	text := fmt.Sprintf(header, m.Account, m.Namespace)
	var full []string
	for _, role := range m.Roles {
		if slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return strings.HasSuffix(remark(rule), asAdministrator) }) {
			full = append(full, role.Name)
		}
	}
	if len(full) > 0 {
		text += "# With these roles the account can become an administrator of the cluster. If that is not\n# acceptable, remove them, and exclude their scenarios with --skip:\n#\n"
		for _, name := range full {
			text += "#   " + name + "\n"
		}
		text += "#\n"
	}
	return text + faster
}

func (r Role) kind() string {
	if r.Namespace != "" {
		return "Role"
	}
	return "ClusterRole"
}

func (r Role) metadata() string {
	if r.Namespace != "" {
		return fmt.Sprintf("{name: %s, namespace: %s}", r.Name, r.Namespace)
	}
	return fmt.Sprintf("{name: %s}", r.Name)
}

// comment returns a string as lines of a comment.
func comment(indent, text string) string {
	const width = 88
	var lines strings.Builder
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			lines.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	if text != "" {
		lines.WriteString(line + "\n")
	}
	return lines.String()
}

// flow returns a rule in flow style.
func flow(rule rbacv1.PolicyRule) string {
	var fields []string
	for _, field := range []struct {
		name string
		list []string
	}{
		{"nonResourceURLs", rule.NonResourceURLs}, {"apiGroups", rule.APIGroups}, {"resources", rule.Resources},
		{"resourceNames", rule.ResourceNames}, {"verbs", rule.Verbs},
	} {
		if len(field.list) == 0 {
			continue
		}
		var items []string
		for _, item := range field.list {
			items = append(items, quoted(item))
		}
		fields = append(fields, field.name+": ["+strings.Join(items, ", ")+"]")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// plain matches strings that YAML reads as strings without quotes. It also matches words such as
// true, which YAML reads as other types.
var plain = regexp.MustCompile(`^[a-z][a-z0-9./-]*$`)

func quoted(text string) string {
	if plain.MatchString(text) && !slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, text) {
		return text
	}
	return strconv.Quote(text)
}
