package decode

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// MaxNamespaceName is the largest length of the short name of a namespace: with the ID of the
// scenario, it is a DNS label of at most 63 characters.
const MaxNamespaceName = 40

// ownLabels is the prefix of the labels by which admissiontest finds its namespaces.
const ownLabels = "admissiontest.dev/"

var namespaceName = regexp.MustCompile(grammar.NamespaceName)

// IsNamespace reports whether a text can be the short name of a namespace: at most MaxNamespaceName
// lower-case letters, digits and hyphens.
func IsNamespace(name string) bool {
	return namespaceName.MatchString(name) && len(name) <= MaxNamespaceName
}

// NoOwnLabels refuses labels that admissiontest sets itself.
func (d *Decoder) NoOwnLabels(labels *strictyaml.Node, where *Place) {
	if labels == nil {
		return
	}
	for i := range labels.Fields {
		if label := &labels.Fields[i]; strings.HasPrefix(label.Name, ownLabels) {
			d.FailField(label, fmt.Sprintf("%s has the label %s; expected labels without the prefix %s, which belongs to admissiontest", where, strictyaml.Quote(label.Name), ownLabels), "")
		}
	}
}

// IsSlug reports whether a name has two or more parts, separated by dots, each of
// lower-case letters, digits and single hyphens.
func IsSlug(name string) bool {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		for word := range strings.SplitSeq(part, "-") {
			if word == "" || strings.ContainsFunc(word, notLowerOrDigit) {
				return false
			}
		}
	}
	return len(parts) > 1
}

func notLowerOrDigit(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// SlugWord returns a text as a word of a scenario's name: lower-case letters, digits and single
// hyphens.
func SlugWord(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), notLowerOrDigit)
	return strings.Join(words, "-")
}
