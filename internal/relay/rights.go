package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// networkPolicy is the right to create a NetworkPolicy, which only Options.Sources needs.
var networkPolicy = apiserver.Right{Verb: "create", Group: "networking.k8s.io", Resource: "networkpolicies"} //nolint:gochecknoglobals // a constant

// Rights returns all rights that Start and Close need. Reading the log of a pod that crashes
// is optional.
func Rights() []apiserver.Right {
	return []apiserver.Right{
		{Verb: "create", Resource: "namespaces"}, {Verb: "get", Resource: "namespaces"}, {Verb: "delete", Resource: "namespaces"},
		{Verb: "create", Resource: "serviceaccounts"}, {Verb: "create", Resource: "secrets"}, {Verb: "create", Resource: "services"},
		{Verb: "create", Group: "apps", Resource: "deployments"}, {Verb: "get", Group: "apps", Resource: "deployments"},
		{Verb: "list", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "portforward"}, networkPolicy,
	}
}

// checkRights returns an error that names all missing rights. If the API server does not
// answer a SelfSubjectAccessReview, the right is assumed to be there.
func (s *Service) checkRights(ctx context.Context) error {
	all := slices.DeleteFunc(Rights(), func(right apiserver.Right) bool { return right == networkPolicy && len(s.options.Sources) == 0 })
	missing := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for i, one := range all {
		group.Go(func() error {
			attributes := &authorizationv1.ResourceAttributes{Verb: one.Verb, Group: one.Group, Resource: one.Resource, Subresource: one.Subresource}
			if one.Resource != "namespaces" || one.Verb != "create" {
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
