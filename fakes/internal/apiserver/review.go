package apiserver

import (
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/transport"
)

// review responds to a review. The World's authorizer decides reviews about authorization. Other
// reviews come back as they were sent, with an empty status.
func (r *Request) review() (reply, error) {
	answer := r.Call.Object.DeepCopyObject()
	var spec authorizationv1.SubjectAccessReviewSpec
	var status *authorizationv1.SubjectAccessReviewStatus
	switch review := answer.(type) {
	case *authorizationv1.SubjectAccessReview:
		spec, status = review.Spec, &review.Status
	case *authorizationv1.LocalSubjectAccessReview:
		spec, status = review.Spec, &review.Status
		if at := spec.ResourceAttributes; at == nil || at.Namespace != r.Call.Namespace {
			return reply{}, r.invalidReview("resourceAttributes", "it must have the namespace of the review")
		}
	case *authorizationv1.SelfSubjectAccessReview:
		spec, status = r.self(review.Spec), &review.Status
	default:
		return r.objectReply(http.StatusCreated, answer)
	}
	switch {
	case (spec.ResourceAttributes == nil) == (spec.NonResourceAttributes == nil):
		return reply{}, r.invalidReview("resourceAttributes", "exactly one of resourceAttributes and nonResourceAttributes must be set")
	case spec.User == "" && len(spec.Groups) == 0:
		return reply{}, r.invalidReview("user", "at least one of user and groups must be set")
	}
	decision, reason, err := r.server.Authorizer.Authorize(r.Call.Context, attributesOf(spec))
	status.Allowed, status.Denied, status.Reason = decision == authorizer.DecisionAllow, decision == authorizer.DecisionDeny, reason
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return r.objectReply(http.StatusCreated, answer)
}

func (r *Request) invalidReview(name, why string) error {
	return apierrors.NewInvalid(r.kind.GVK.GroupKind(), "", field.ErrorList{field.Invalid(field.NewPath("spec", name), "", why)})
}

// self returns the spec of a review about the client itself. The user is the user that the client
// impersonates, or else the user of the API server, because a plugin uses the API server's client.
func (r *Request) self(spec authorizationv1.SelfSubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewSpec {
	name, groups := r.http.Header.Get(transport.ImpersonateUserHeader), r.http.Header.Values(transport.ImpersonateGroupHeader)
	if name == "" {
		name, groups = user.APIServerUser, []string{user.SystemPrivilegedGroup, user.AllAuthenticated}
	}
	return authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: spec.ResourceAttributes, NonResourceAttributes: spec.NonResourceAttributes,
		User: name, Groups: groups, UID: r.http.Header.Get(transport.ImpersonateUIDHeader),
	}
}

// attributesOf returns the attributes that an API server passes to its authorizer for a review, without selectors.
func attributesOf(spec authorizationv1.SubjectAccessReviewSpec) authorizer.AttributesRecord {
	who := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if who.Extra == nil {
			who.Extra = map[string][]string{}
		}
		who.Extra[key] = values
	}
	if path := spec.NonResourceAttributes; path != nil {
		return authorizer.AttributesRecord{User: who, Verb: path.Verb, Path: path.Path}
	}
	at := spec.ResourceAttributes
	attributes := authorizer.AttributesRecord{
		User: who, Verb: at.Verb, Namespace: at.Namespace, APIGroup: at.Group, APIVersion: at.Version,
		Resource: at.Resource, Subresource: at.Subresource, Name: at.Name, ResourceRequest: true,
	}
	if at.Version == "" {
		attributes.APIVersion = "*"
	}
	return attributes
}
