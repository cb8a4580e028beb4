package relay

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is one verb on a resource that Start needs.
type right struct{ verb, group, resource, subresource string }

// String returns the right for errors: "create pods/portforward".
func (r right) String() string {
	name := r.resource
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	if r.group != "" {
		name += "." + r.group
	}
	return r.verb + " " + name
}

// rights returns all rights that Start and Close need. Reading the log of a pod that crashes
// is optional.
func rights() []right {
	return []right{
		{"create", "", "namespaces", ""}, {"get", "", "namespaces", ""}, {"delete", "", "namespaces", ""},
		{"create", "", "serviceaccounts", ""}, {"create", "", "secrets", ""}, {"create", "", "services", ""},
		{"create", "apps", "deployments", ""}, {"get", "apps", "deployments", ""},
		{"list", "", "pods", ""}, {"create", "", "pods", "portforward"},
	}
}

// checkRights returns an error that names all missing rights. If the API server does not
// answer a SelfSubjectAccessReview, the right is assumed to be there.
func (s *Service) checkRights(ctx context.Context) error {
	all := rights()
	missing := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for i, one := range all {
		group.Go(func() error {
			attributes := &authorizationv1.ResourceAttributes{Verb: one.verb, Group: one.group, Resource: one.resource, Subresource: one.subresource}
			if one.resource != "namespaces" || one.verb != "create" {
				attributes.Namespace = s.namespace
			}
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
			answer, err := s.authorization.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("ask for the right to %s: %w", one, err)
			}
			missing[i] = !answer.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var names []string
	for i, one := range all {
		if missing[i] {
			names = append(names, one.String())
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("rights are missing in namespace %s: %s; nothing was created", s.namespace, strings.Join(names, ", "))
	}
	return nil
}
