package scenario

import (
	"regexp"
	"strings"
)

var isNamespaceName = regexp.MustCompile(namespaceName)

// isNamespace reports whether a string can be the short name of a namespace. With the ID of the scenario, it is a DNS
// label of at most 63 characters.
func isNamespace(name string) bool { return isNamespaceName.MatchString(name) }

// slugWord returns a string as a word of a scenario's name: lower-case letters, digits and single
// hyphens.
func slugWord(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}
