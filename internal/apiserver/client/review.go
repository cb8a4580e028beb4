package client

import (
	"cmp"
	"context"
	"fmt"

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

// Missing returns the rights that the user of this client does not have. It sends one review for each. If the API
// server does not answer such questions, no right is missing.
func (c *Client) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	missing := make([]bool, len(rights))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, right := range rights {
		group.Go(func() error {
			review, err := reviews.SelfSubjectAccessReviews().Create(limited, &authorizationv1.SelfSubjectAccessReview{Spec: right.question()}, metav1.CreateOptions{})
			if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("review the right to %s on API server at %s: %w", right, c.Host(), withNoResponse(err))
			}
			missing[i] = err == nil && !review.Status.Allowed
			return nil
		})
	}
	err = group.Wait()
	var found []Right
	for i, right := range rights {
		if missing[i] {
			found = append(found, right)
		}
	}
	return found, err
}

// question is the right in a SelfSubjectAccessReview.
func (r Right) question() authorizationv1.SelfSubjectAccessReviewSpec {
	if r.Path != "" {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: r.Verb, Path: r.Path}}
	}
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, Namespace: r.Namespace,
	}}
}
