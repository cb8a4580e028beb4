package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// annotationRules returns the rules for warnings and audit annotations.
func annotationRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-ANNOT-1", Name: "warnings-reach-the-client", Level: framework.Should,
			Title:  "Warnings are valid UTF-8 without control characters, at most 4096 characters in all, without the prefix Warning:, and each of them once.",
			Why:    "The API server drops a warning with a line break, and shortens long ones.",
			Fix:    "Write one short sentence for each warning.",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go"},
			Check:  checkWarnings,
		},
		{
			ID: "WH-ANNOT-2", Name: "audit-annotations-reach-the-log", Level: framework.Should,
			Title:  "The key of each audit annotation is at most 63 letters, digits, dots, dashes and underscores, without a /.",
			Why:    "The API server adds the name of the webhook and a / in front of the key, and drops the annotation if the result is no qualified name.",
			Fix:    "Use a short key such as image-digest.",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/attributes.go"},
			Check:  checkAuditAnnotations,
		},
	}
}

// eachAnswer calls f for the answer to each sample that is a decision.
func eachAnswer(t *check.T, f func(check.Case, check.Response)) {
	for _, c := range t.Cases() {
		if a := t.Send(t.Context(), t.Webhook, c.Request); a.NoDecision() == "" {
			f(c, a.Response)
		}
	}
}

func checkWarnings(t *check.T) {
	const most = 4096
	eachAnswer(t, func(c check.Case, response check.Response) {
		t.Reached()
		sum := 0
		for i, each := range response.Warnings {
			sum += len(each)
			var why string
			switch {
			case !utf8.ValidString(each) || strings.ContainsRune(each, utf8.RuneError):
				why = "it is not valid UTF-8"
			case strings.ContainsFunc(each, unicode.IsControl):
				why = "it has a control character, such as a line break"
			case strings.HasPrefix(each, "Warning:"):
				why = "clients print Warning: themselves"
			case slices.Contains(response.Warnings[:i], each):
				why = "it is there twice"
			default:
				continue
			}
			t.Errorf("%s: warning %q: %s", c, each, why)
		}
		if sum > most {
			t.Errorf("%s: the warnings have %d characters, want at most %d", c, sum, most)
		}
	})
}

func checkAuditAnnotations(t *check.T) {
	eachAnswer(t, func(c check.Case, response check.Response) {
		t.Reached()
		for key := range response.AuditAnnotations {
			problems := validation.IsQualifiedName(key)
			if strings.Contains(key, "/") {
				problems = []string{fmt.Sprintf("it has a /, and the API server writes %s/ in front of it", nameOf(t.Webhook))}
			}
			if len(problems) > 0 {
				t.Errorf("%s: the key %q of an audit annotation: %s", c, key, problems[0])
			}
		}
	})
}
