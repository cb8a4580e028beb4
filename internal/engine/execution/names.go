package execution

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework/scenario"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// Texts returns what replaces each text of the outcome. It does not have what is not shown, and has the names that
// the user wrote instead of those that the run has made of them. The namespace of the scenario is $(namespace).
func (c *Case) Texts() func(text string) string {
	run := c.ID[:max(strings.LastIndex(c.ID, "-"), 0)]
	if run == "" {
		return redact.Text
	}
	configurations := map[string]bool{}
	for _, one := range c.Own() {
		configurations[(&unstructured.Unstructured{Object: one}).GetName()] = true
	}
	made := regexp.MustCompile(`\b` + regexp.QuoteMeta(run) + `\b(-\d{5}\b|-installed\b)?(?:-([a-zA-Z0-9.-]*[a-zA-Z0-9]))?(\.[a-z])?`)
	written := func(name string) string {
		parts := made.FindStringSubmatch(name)
		number, rest, group := parts[1], parts[2], parts[3]
		switch {
		case number == "-installed" && rest != "":
			return rest
		case number == "" || number == "-installed":
			return "$(run)" + name[len(run):]
		case run+number != c.ID:
			return name // of another scenario
		case rest == "" && group != "": // an API group
			return "$(id)" + group
		case rest == "":
			return "$(namespace)"
		case configurations[rest], c.Scenario.IsPolicyTest(): // a PolicyTest has no placeholders
			return rest
		case slices.ContainsFunc(c.Scenario.Spec.Namespaces, func(n scenario.Namespace) bool { return n.Name == rest }):
			return "$(namespace." + rest + ")"
		default:
			return "$(id)-" + rest
		}
	}
	return func(text string) string { return made.ReplaceAllStringFunc(redact.Text(text), written) }
}
