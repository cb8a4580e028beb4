package execution

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// explainLimit limits the time to find out what the configurations of a scenario do.
const explainLimit = 10 * time.Second

// explain returns what each webhook, policy and binding of the scenario does about a request, or nil
// if it cannot be found out.
func (c *Case) explain(ctx context.Context, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	return c.explainOf(ctx, c.ID, request, result)
}

// explainOf is explain for the webhooks and policies of an ID: see target.Optional.
func (c *Case) explainOf(ctx context.Context, id string, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	do := c.target.Optional().Explain
	if do == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, explainLimit)
	defer cancel()
	return do(ctx, id, request, result)
}

// judgeRefuser adds the mismatches between the webhook or policy that refused a request and the expected
// one. NotSaid is set if there are no other mismatches, the API server does not say who refused, and the
// expected webhook or policy may have refused.
func (c *Case) judgeRefuser(ctx context.Context, want *scenario.Expectation, request framework.Request, result framework.Result, others []expect.Mismatch) (all []expect.Mismatch, notSaid string) {
	if want == nil || result.Status.Code == 0 || result.Allowed() {
		return others, "" // a request that was not refused is among the others
	}
	got := expect.RefusedBy(result.Status, c.ID)
	got.Failed = got.Failed && !c.declares(got)
	all = append(others, expect.Refused(want, got, result.Status)...)
	if want.RefusedBy != nil && got == (expect.Refuser{}) && len(others) == 0 && !byOther(result.Status) && c.canDecide(ctx, *want.RefusedBy, request, result) {
		notSaid = fmt.Sprintf("the API server does not say who refused the request: %d %s", result.Status.Code, result.Status.Message)
	}
	return all, notSaid
}

// declares reports whether the message of a refusal is that of a validation in a manifest of the scenario,
// even if it reads like an error.
func (c *Case) declares(by expect.Refuser) bool {
	return by.Message != "" && slices.ContainsFunc(c.Own(), func(manifest map[string]any) bool {
		policy := unstructured.Unstructured{Object: manifest}
		validations, _, _ := unstructured.NestedSlice(manifest, "spec", "validations")
		return policy.GetName() == by.Policy && slices.ContainsFunc(validations, func(validation any) bool {
			fields, _ := validation.(map[string]any)
			message, _ := fields["message"].(string)
			return strings.TrimSpace(message) == by.Message
		})
	})
}

// canDecide reports whether a webhook or policy can have decided about a request. It can if nothing is
// known of it.
func (c *Case) canDecide(ctx context.Context, who scenario.RefusedBy, request framework.Request, result framework.Result) bool {
	findings, err := c.explain(ctx, request, result)
	return err != nil || len(findings) == 0 || slices.ContainsFunc(findings, func(f reach.Finding) bool {
		is := who.Webhook != "" && f.Webhook == who.Webhook || slices.Contains(who.Policy, f.Name) && (who.Binding == "" || f.Binding == who.Binding)
		return is && f.Effect != reach.EffectNone
	})
}

// byOther reports whether a refusal is certainly not one of a webhook or a policy: the authorizer, the
// validation of the object, or the storage refused it
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, k8s.io/apimachinery/pkg/api/errors).
func byOther(status metav1.Status) bool {
	switch status.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict:
		return true
	case http.StatusForbidden:
		return strings.Contains(status.Message, "User \"") && strings.Contains(status.Message, "\" cannot ")
	case http.StatusUnprocessableEntity:
		return strings.Contains(status.Message, "\" is invalid: ")
	default:
		return false
	}
}

// forbidden matches what an API server says of a request that its authorizer refused
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
var forbidden = regexp.MustCompile(` is forbidden: User "([^"]*)" cannot (\S+) resource "([^"/]*)/?([^"]*)" in API group "([^"]*)" (at the cluster scope|in the namespace "([^"]*)")`)

// rolesLimit limits the wait until the authorizer has read the roles that were written before.
const rolesLimit = 3 * time.Second

// unauthorized describes a refusal by the authorizer, with what grants the right. It is empty for another
// response, for a refusal by an authorizer that has not read the roles, and if there is no answer: then
// the scenario is repeated. A user who may not ask for rights has none.
func (c *Case) unauthorized(ctx context.Context, request framework.Request, status metav1.Status) string {
	found := forbidden.FindStringSubmatch(status.Message)
	if found == nil || status.Code != http.StatusForbidden || strings.Contains(status.Message, "denied the request") {
		return ""
	}
	user, verb, resource, subresource, group, namespace := found[1], found[2], found[3], found[4], found[5], found[7]
	attributes := &authorizationv1.ResourceAttributes{
		Verb: verb, Group: group, Version: request.Kind.Version, Resource: resource, Subresource: subresource, Namespace: namespace, Name: request.Name,
	}
	as := request.User
	if as != nil && as.Name != user {
		as = nil // the user of the run may not impersonate
	}
	var allowed, answered bool
	_ = wait.PollUntilContextTimeout(ctx, 10*pollInterval, min(rolesLimit, c.patience), true, func(ctx context.Context) (bool, error) {
		yes, known := c.may(ctx, as, attributes) // the end of the wait can interrupt the last question
		allowed, answered = allowed || yes, answered || known
		return allowed, nil
	})
	if allowed || !answered {
		return ""
	}
	what := fmt.Sprintf("user %q may not %s %s", user, verb, strings.TrimSuffix(resource+"."+group, "."))
	if subresource != "" {
		what += "/" + subresource
	}
	return fmt.Sprintf("the authorizer refused the request: %s %s: %s", what, c.scopeName(namespace), c.remedy(as, namespace))
}

// may asks the API server whether a user, or that of the run, has a right. A user who may not ask has not. Answered is false
// if the API server does not say.
func (c *Case) may(ctx context.Context, user *framework.User, attributes *authorizationv1.ResourceAttributes) (allowed, answered bool) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	kind := authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview")
	review.SetGroupVersionKind(kind)
	result, err := c.target.Do(ctx, framework.Request{Verb: framework.VerbCreate, Kind: kind, Object: review, User: user})
	if err != nil || !result.Allowed() {
		return false, err == nil && result.Status.Code == http.StatusForbidden
	}
	allowed, answered, _ = unstructured.NestedBool(result.Fields(), "status", "allowed")
	return allowed, answered
}

// scopeName describes a namespace on the API server as the scenario names it. The empty one is the cluster.
func (c *Case) scopeName(namespace string) string {
	if namespace == "" {
		return "at the cluster scope"
	}
	return "in namespace " + cmp.Or(strings.TrimPrefix(strings.TrimPrefix(namespace, c.ID), "-"), "$(namespace)")
}

// remedy says how to give a user, or that of the run, a right in a namespace.
func (c *Case) remedy(user *framework.User, namespace string) string {
	roles, where := "a ClusterRole and a ClusterRoleBinding", "given"
	if namespace != "" {
		roles = "a Role and a RoleBinding"
	}
	if c.Scenario.IsPolicyTest() {
		where = "params"
	}
	if user == nil {
		return `it is the user of the run; "admissiontest rbac" prints the roles that a run needs`
	}
	return fmt.Sprintf("grant it with %s in %s", roles, where)
}
