package grammar

import "strings"

// NamespaceName is the regular expression for the short name of a namespace.
const NamespaceName = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`

// ServiceName returns NAMESPACE/NAME for the Service of a webhook under test, and "" for a Service of
// the scenario itself, whose namespace is a placeholder.
func ServiceName(namespace, name string) string {
	if namespace == "" || name == "" || strings.Contains(namespace, "$(") {
		return ""
	}
	return namespace + "/" + name
}
