package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
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

// parallelReviews limits the number of concurrent reviews.
const parallelReviews = 16

// Missing returns the rights that the user of this client does not have. It sends one review, and one more for each
// right that the first does not grant: not every authorizer can list its rules. If the API server does not answer such
// questions, no right is missing.
func (c *Client) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	granted, err := reviews.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: anyNamespace},
	}, metav1.CreateOptions{})
	if err != nil && !unanswered(err) {
		return nil, fmt.Errorf("review the rights on API server at %s: %w", c.Host(), withNoResponse(err))
	}
	if err != nil {
		granted = &authorizationv1.SelfSubjectRulesReview{}
	}
	missing := make([]bool, len(rights))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, right := range rights {
		if right.in(granted.Status) {
			continue
		}
		group.Go(func() error {
			review, err := reviews.SelfSubjectAccessReviews().Create(limited, &authorizationv1.SelfSubjectAccessReview{Spec: right.question()}, metav1.CreateOptions{})
			if err != nil && !unanswered(err) {
				return fmt.Errorf("review the right to %s: %w", right, withNoResponse(err))
			}
			missing[i] = err == nil && !review.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var found []Right
	for i, right := range rights {
		if missing[i] {
			found = append(found, right)
		}
	}
	return found, nil
}

// anyNamespace represents the namespaces of a run in reviews. It does not exist: only rights in all namespaces are
// rights in it.
const anyNamespace = "at-run-scenario"

// unanswered reports whether an API server does not answer reviews.
func unanswered(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// question is the right in a SelfSubjectAccessReview.
func (r Right) question() authorizationv1.SelfSubjectAccessReviewSpec {
	if r.Path != "" {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: r.Verb, Path: r.Path}}
	}
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, Namespace: r.Namespace,
	}}
}

// in reports whether the rules of a user grant the right.
func (r Right) in(granted authorizationv1.SubjectRulesReviewStatus) bool {
	has := func(list []string, wanted string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, wanted)
	}
	if r.Path != "" {
		return slices.ContainsFunc(granted.NonResourceRules, func(rule authorizationv1.NonResourceRule) bool {
			return has(rule.Verbs, r.Verb) && has(rule.NonResourceURLs, r.Path)
		})
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return slices.ContainsFunc(granted.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
		return has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || r.Name != "" && slices.Contains(rule.ResourceNames, r.Name))
	})
}
