package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Right is one action that a user must be allowed to do.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Name and Namespace restrict the right to one object or one namespace. Empty means
	// all.
	Name, Namespace string
	// Path is the path to read, for a right without a resource.
	Path string
}

// String is as in an error: "create pods/portforward", "impersonate groups
// system:masters", "update deployments.apps".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	text := cmp.Or(r.Verb, `""`) + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// May reports whether the user of this client has a right. It is true if the API server
// does not answer such questions.
func (c *Client) May(ctx context.Context, right Right) (bool, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return false, err
	}
	spec := authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: right.Verb, Group: right.Group, Resource: right.Resource, Subresource: right.Subresource,
		Name: right.Name, Namespace: right.Namespace,
	}}
	if right.Path != "" {
		spec = authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: right.Verb, Path: right.Path}}
	}
	review, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("review the right to %s: %w", right, withNoResponse(err))
	}
	return review.Status.Allowed, nil
}

// Rules are the rights of a user as the API server lists them. A right that they do not
// cover may still be granted, because not every authorizer can list its rules.
type Rules struct {
	resources []authorizationv1.ResourceRule
	paths     []authorizationv1.NonResourceRule
}

// Rules returns the rights of the user of this client in a namespace. If the API server
// does not list them, there are none.
func (c *Client) Rules(ctx context.Context, namespace string) (Rules, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return Rules{}, err
	}
	review, err := reviews.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return Rules{}, nil
	}
	if err != nil {
		return Rules{}, fmt.Errorf("review the rights on API server at %s: %w", c.Host(), withNoResponse(err))
	}
	return Rules{resources: review.Status.ResourceRules, paths: review.Status.NonResourceRules}, nil
}

// All reports whether the rules grant everything.
func (r Rules) All() bool {
	return r.Cover(Right{Verb: "*", Group: "*", Resource: "*"}) && r.Cover(Right{Verb: "*", Path: "*"})
}

// Cover reports whether the rules grant a right.
func (r Rules) Cover(right Right) bool {
	has := func(list []string, wanted string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, wanted)
	}
	if right.Path != "" {
		return slices.ContainsFunc(r.paths, func(rule authorizationv1.NonResourceRule) bool {
			return has(rule.Verbs, right.Verb) && has(rule.NonResourceURLs, right.Path)
		})
	}
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	return slices.ContainsFunc(r.resources, func(rule authorizationv1.ResourceRule) bool {
		return has(rule.Verbs, right.Verb) && has(rule.APIGroups, right.Group) && has(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || right.Name != "" && slices.Contains(rule.ResourceNames, right.Name))
	})
}
