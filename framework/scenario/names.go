package scenario

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

var (
	isScenarioName  = regexp.MustCompile(scenarioName)
	isNamespaceName = regexp.MustCompile(namespaceName)
)

// isNamespace reports whether a string can be the short name of a namespace. With the ID of the scenario, it is a DNS
// label of at most 63 characters.
func isNamespace(name string) bool { return isNamespaceName.MatchString(name) }

// ownLabels is the prefix of the labels by which admissiontest finds its namespaces.
const ownLabels = "admissiontest.dev/"

// noOwnLabels refuses labels that admissiontest sets itself.
func (d *decoder) noOwnLabels(labels *document.Node, where *document.Path) {
	if labels == nil {
		return
	}
	for _, label := range labels.Fields {
		if strings.HasPrefix(label.Name, ownLabels) {
			d.Fail(label.Key, fmt.Sprintf("%s has the label %s; expected labels without the prefix %s, which belongs to admissiontest", where, document.Quote(label.Name), ownLabels), "")
		}
	}
}

// slugWord returns a string as a word of a scenario's name: lower-case letters, digits and single
// hyphens.
func slugWord(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}
