package apiserver

import (
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
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

// attributesOf returns the attributes that an API server passes to its authorizer for a review.
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
	if at.LabelSelector != nil {
		attributes.LabelSelectorRequirements, attributes.LabelSelectorParsingErr = labelRequirements(*at.LabelSelector)
	}
	if at.FieldSelector != nil {
		attributes.FieldSelectorRequirements, attributes.FieldSelectorParsingErr = fieldRequirements(*at.FieldSelector)
	}
	return attributes
}

func labelRequirements(given authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	selector, err := labels.Parse(given.RawSelector)
	if len(given.Requirements) > 0 {
		selector, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: given.Requirements})
	}
	if err != nil {
		return nil, err
	}
	requirements, _ := selector.Requirements()
	return requirements, nil
}

func fieldRequirements(given authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	selector, err := fields.ParseSelector(given.RawSelector)
	if err != nil {
		return nil, err
	}
	terms := []fields.Selector{selector}
	for _, r := range given.Requirements {
		switch {
		case r.Operator == metav1.FieldSelectorOpIn && len(r.Values) == 1:
			terms = append(terms, fields.OneTermEqualSelector(r.Key, r.Values[0]))
		case r.Operator == metav1.FieldSelectorOpNotIn && len(r.Values) == 1:
			terms = append(terms, fields.OneTermNotEqualSelector(r.Key, r.Values[0]))
		default:
			return nil, fmt.Errorf("field selector of %s has operator %s and %d values: want In or NotIn, and one value", r.Key, r.Operator, len(r.Values))
		}
	}
	return fields.AndSelectors(terms...).Requirements(), nil
}
