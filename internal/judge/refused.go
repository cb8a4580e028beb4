package judge

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
)

// Refuser is who refused a request: a webhook or a policy. The zero value is not known.
type Refuser struct {
	Webhook, Policy, Binding string
	// Message is the message of the webhook, or of the validation of the policy.
	Message string
}

// String names the refuser.
func (r Refuser) String() string {
	switch {
	case r.Webhook != "":
		return fmt.Sprintf("webhook %q", r.Webhook)
	case r.Binding != "":
		return fmt.Sprintf("policy %q, binding %q: %s", r.Policy, r.Binding, r.Message)
	case r.Policy != "":
		return fmt.Sprintf("policy %q: %s", r.Policy, r.Message)
	default:
		return ""
	}
}

// The beginnings of messages by which an API server says who refused a request
// (k8s.io/apiserver/pkg/admission/plugin: webhook/errors/statuserror.go, policy/validating/dispatcher.go,
// policy/generic/policy_dispatcher.go). Each matches from the start of the message, because the rest of
// it can be text of a webhook or a policy.
const (
	forbidden     = `(?s)^(?:[^\s"]+ (?:"[^"]*" )?is forbidden: )?`
	byWebhook     = `(?s)^admission webhook "([^"]+)" denied the request(?:: (.*)| without explanation)$`
	byPolicy      = forbidden + `(?:ValidatingAdmissionPolicy|policy) '([^']+)' with binding '([^']+)' denied request: (.*)$`
	byPolicyAlone = forbidden + `(?:ValidatingAdmissionPolicy '|policy ['"])([^'"]+)['"] denied request: (.*)$`
)

// RefusedBy returns who refused a request according to the response, or the zero value. Names of
// manifests that were installed with a prefix are returned without it.
func RefusedBy(status metav1.Status, prefix string) Refuser {
	if found := regexp.MustCompile(byWebhook).FindStringSubmatch(status.Message); found != nil {
		return Refuser{Webhook: found[1], Message: found[2]}
	}
	if found := regexp.MustCompile(byPolicy).FindStringSubmatch(status.Message); found != nil {
		return Refuser{Policy: strings.TrimPrefix(found[1], prefix), Binding: strings.TrimPrefix(found[2], prefix), Message: found[3]}
	}
	if found := regexp.MustCompile(byPolicyAlone).FindStringSubmatch(status.Message); found != nil {
		return Refuser{Policy: strings.TrimPrefix(found[1], prefix), Message: found[2]}
	}
	return Refuser{}
}

// Refused returns the mismatches between the webhook or policy that refused a request and the expected
// one. Status is the response.
func Refused(expect scenario.RefusedBy, got Refuser, status metav1.Status) []Mismatch {
	actual := got.String()
	if got == (Refuser{}) {
		actual = "the response names no webhook and no policy: " + summary(status)
	}
	var found []Mismatch
	for _, part := range []struct{ name, want, got string }{
		{"webhook", expect.Webhook, got.Webhook},
		{"policy", expect.Policy, got.Policy},
		{"binding", expect.Binding, got.Binding},
		{"validation", expect.Validation, got.Message},
	} {
		if part.want != "" && part.want != part.got {
			found = append(found, one("refusedBy."+part.name, match.Show(part.want), actual)...)
		}
	}
	return found
}
