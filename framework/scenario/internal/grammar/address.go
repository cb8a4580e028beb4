package grammar

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// ServiceName returns NAMESPACE/NAME for the Service of a webhook under test, and "" for a Service of
// the scenario itself, whose namespace is a placeholder.
func ServiceName(namespace, name string) string {
	if namespace == "" || name == "" || strings.Contains(namespace, "$(") {
		return ""
	}
	return namespace + "/" + name
}

// hookURL matches the URL of a Hook in a clientConfig, before its placeholders are replaced.
var hookURL = regexp.MustCompile(`(?i)^https://(\$\(hooks\.host\)(:\$\(hooks\.port\))?|(localhost|127\.0\.0\.1):\$\(hooks\.port\))(/|$)`)

// HostPort returns HOST:PORT for the URL of a webhook under test. It returns "" for the URL of a Hook, for
// what is not an https URL, and for a host in the domain invalid, which does not exist (RFC 6761).
func HostPort(address string) string {
	parsed, err := url.Parse(strings.ReplaceAll(address, ":$(hooks.port)", ":1"))
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || hookURL.MatchString(address) ||
		strings.HasSuffix(strings.ToLower(strings.TrimSuffix(parsed.Hostname(), ".")), ".invalid") {
		return ""
	}
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(parsed.Hostname()), port)
}
