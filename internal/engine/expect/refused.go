package expect

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Refuser is who refused a request: a webhook or a policy. The zero value is not known.
type Refuser struct {
	Webhook, Policy, Binding string
	// Message is the message of the webhook, or of the validation of the policy, or the error.
	Message string
	// Failed is true if the webhook or policy decided nothing: its expression, configuration or call
	// failed, and its failurePolicy is Fail. An error that names neither has only Message and Failed.
	Failed bool
}

// Name names the webhook, or the policy and binding.
func (r Refuser) Name() string {
	switch {
	case r.Webhook != "":
		return fmt.Sprintf("webhook %q", r.Webhook)
	case r.Binding != "":
		return fmt.Sprintf("policy %q, binding %q", r.Policy, r.Binding)
	default:
		return fmt.Sprintf("policy %q", r.Policy)
	}
}

// String describes the refuser.
func (r Refuser) String() string {
	switch {
	case r == (Refuser{}):
		return ""
	case r.Webhook != "" && !r.Failed:
		return r.Name()
	case r.Webhook != "":
		return "failed call of " + r.Name() + ": " + r.Message
	case r.Policy == "":
		return "error in a match condition of a webhook: " + r.Message
	case r.Failed:
		return "error of " + r.Name() + ": " + r.Message
	default:
		return r.Name() + ": " + r.Message
	}
}

// The beginnings of messages by which an API server says who refused a request
// (k8s.io/apiserver/pkg/admission/plugin: webhook/errors/statuserror.go, webhook/{mutating,validating}/dispatcher.go,
// policy/validating/dispatcher.go, policy/generic/policy_dispatcher.go, and pkg/util/webhook/error.go). Each
// matches from the start of the message, because the rest of it can be text of a webhook or a policy.
var (
	byWebhook = regexp.MustCompile(`(?s)^admission webhook "([^"]+)" denied the request(?:: (.*)| without explanation)$`)
	byCall    = regexp.MustCompile(`(?s)^(?:Internal error occurred: )?(?:failed calling|admission) webhook "([^"]+)"(?:: |; | )(.*)$`)
	// A MutatingAdmissionPolicy is a "policy". With the quotes of %q it has no binding.
	byPolicy = regexp.MustCompile(`(?s)^(?:[^\s"]+ (?:"[^"]*" )?is forbidden: )?(ValidatingAdmissionPolicy|policy) ['"]([^'"]+)['"](?: with binding '([^']+)')? denied request: (.*)$`)
	byMatch  = regexp.MustCompile(`(?s)^[^\s"]+ (?:"[^"]*" )?is forbidden: (.*)$`)
)

// policyError matches the message of a ValidatingAdmissionPolicy that could not be configured or evaluated
// (k8s.io/apiserver/pkg/admission/plugin: policy/validating/{dispatcher,validator}.go, cel/activation.go,
// webhook/matchconditions/matcher.go). Several errors of match conditions are a list in brackets.
var policyError = regexp.MustCompile(`(?s)^\[?(?:` +
	`failed to configure (?:policy|binding): |unrecognized failure policy: '|` +
	`expression '.+' resulted in error: |compilation error: |unexpected internal error compiling expression|` +
	`validation failed due to running out of cost budget, no further validation rules will be run|` +
	`runtime cost could not be calculated for expression: |failed to prepare \w+ variable for evaluation: |` +
	`failed messageExpression: |valueExpression '.*' resulted in unsupported return type: |` +
	`Invalid type sent to validator, |internal error converting ExpressionAccessor)`)

// RefusedBy returns who refused a request according to the response, or the zero value. Names of
// manifests are those that the user wrote: without the ID of the scenario or the run as prefix.
func RefusedBy(status metav1.Status, id string) Refuser {
	if found := byWebhook.FindStringSubmatch(status.Message); found != nil {
		return Refuser{Webhook: found[1], Message: found[2]}
	}
	if found := byCall.FindStringSubmatch(status.Message); found != nil {
		return Refuser{Webhook: found[1], Message: found[2], Failed: true}
	}
	if found := byPolicy.FindStringSubmatch(status.Message); found != nil {
		// A MutatingAdmissionPolicy has no validations. The reason of an error is Invalid, which is also
		// the default of a validation.
		decided := found[1] != "policy" && (!policyError.MatchString(found[4]) || status.Reason != "" && status.Reason != metav1.StatusReasonInvalid)
		return Refuser{Policy: runid.Written(found[2], id), Binding: runid.Written(found[3], id), Message: found[4], Failed: !decided}
	}
	if found := byMatch.FindStringSubmatch(status.Message); found != nil && policyError.MatchString(found[1]) {
		return Refuser{Message: found[1], Failed: true}
	}
	return Refuser{}
}

// Refused returns the mismatches between the webhook or policy that refused a request and what is expected.
// Status is the response. The mismatches do not show the values of secrets.
func Refused(expect *scenario.Expectation, got Refuser, status metav1.Status) []Mismatch {
	c, by := compare(), expect.RefusedBy
	if by == nil {
		if got.Failed && !namesCause(expect, got, status) {
			return notDenied("allowed", expect, got)
		}
		return nil
	}
	actual := got.String()
	if got == (Refuser{}) {
		actual = "the response names no webhook and no policy: " + c.summary(status)
	} else if got.Webhook+got.Policy == "" {
		actual += " (the API server does not name the webhook: expect code and message)"
	}
	var found []Mismatch
	if by.Webhook != "" && by.Webhook != got.Webhook {
		found = append(found, one("refusedBy.webhook", c.Show(by.Webhook), actual)...)
	}
	if len(by.Policy) > 0 && !slices.Contains(by.Policy, got.Policy) {
		found = append(found, one("refusedBy.policy", c.OneOf(by.Policy), actual)...)
	}
	if by.Binding != "" && by.Binding != got.Binding {
		found = append(found, one("refusedBy.binding", c.Show(by.Binding), actual)...)
	}
	switch {
	case by.Error != "":
		if !got.Failed || !strings.Contains(got.Message, by.Error) {
			found = append(found, one("refusedBy.error", "an error that contains "+c.Show(by.Error), actual)...)
		}
	case got.Failed:
		if len(found) == 0 {
			found = notDenied("refusedBy", expect, got)
		}
	case by.Validation != "" && by.Validation != got.Message:
		found = append(found, one("refusedBy.validation", c.Show(by.Validation), actual)...)
	}
	return found
}

// namesCause reports whether an expectation says for which cause a request is refused, or is not met by this
// refusal anyway. An error of a policy has the code and the reason of a denial. A failed call has others.
func namesCause(expect *scenario.Expectation, got Refuser, status metav1.Status) bool {
	if allowed, checked := expectsAllowed(expect); checked && allowed {
		return true
	}
	byCode := len(expect.Code) > 0 || len(expect.Reason) > 0
	return byCode && got.Webhook != "" || len(expect.Message) > 0 || expect.Details != nil || len(comparison{}.judgeStatus(expect, framework.Result{Status: status})) > 0
}

// notDenied returns the mismatch between a denial and the error because of which a request was refused.
func notDenied(path string, expect *scenario.Expectation, got Refuser) []Mismatch {
	remedy := "message: PART"
	switch {
	case expect.PolicyErrors:
		remedy = "denied: {error: PART}"
	case got.Policy != "":
		remedy = fmt.Sprintf("refusedBy: {policy: %s, error: PART}", got.Policy)
	case got.Webhook != "":
		remedy = fmt.Sprintf("refusedBy: {webhook: %s, error: PART}", got.Webhook)
	}
	return one(path, "a denial (to expect an error: "+remedy+")", got.String())
}

// warnedByPolicy matches the warning of a ValidatingAdmissionPolicy
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go).
var warnedByPolicy = regexp.MustCompile(`(?s)^Validation failed for ValidatingAdmissionPolicy '[^']+' with binding '[^']+': (.*)$`)

// markWarnings returns warnings with {error: TEXT} for those that report an error of a policy.
func markWarnings(warnings []string) []any {
	marked := list(warnings)
	for i, warning := range warnings {
		if found := warnedByPolicy.FindStringSubmatch(warning); found != nil && policyError.MatchString(found[1]) {
			marked[i] = map[string]any{"error": warning}
		}
	}
	return marked
}

// failuresKey is the key of the audit annotation with the failed validations of policies whose
// validationActions have Audit.
const failuresKey = "validation.policy.admission.k8s.io/validation_failure"

// markFailures returns audit annotations in which an error of a policy is the error, not the message, of
// a failed validation.
func markFailures(annotations map[string]string) map[string]string {
	var failures []map[string]any
	if json.Unmarshal([]byte(annotations[failuresKey]), &failures) != nil {
		return annotations
	}
	for _, failure := range failures {
		if message, _ := failure["message"].(string); policyError.MatchString(message) {
			failure["error"] = message
			delete(failure, "message")
		}
	}
	marked, err := json.Marshal(failures)
	if err != nil {
		return annotations
	}
	annotations = maps.Clone(annotations)
	annotations[failuresKey] = string(marked)
	return annotations
}
