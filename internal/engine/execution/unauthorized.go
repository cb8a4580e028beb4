package execution

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
)

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
		allowed, answered = c.may(ctx, as, attributes)
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
