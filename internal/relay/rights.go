package relay

import (
	"context"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// rights returns all rights that Start and Close need. Reading the log of a pod that crashes is optional.
func (s *Service) rights() []apiserver.Right {
	all := []apiserver.Right{
		{Verb: "create", Resource: "namespaces"}, {Verb: "get", Resource: "namespaces"}, {Verb: "delete", Resource: "namespaces"},
		{Verb: "create", Resource: "serviceaccounts"}, {Verb: "create", Resource: "secrets"}, {Verb: "create", Resource: "services"},
		{Verb: "create", Group: "apps", Resource: "deployments"}, {Verb: "get", Group: "apps", Resource: "deployments"},
		{Verb: "list", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "portforward"},
	}
	if len(s.options.Sources) > 0 {
		all = append(all, apiserver.Right{Verb: "create", Group: "networking.k8s.io", Resource: "networkpolicies"})
	}
	for i := range all {
		if all[i].Resource != "namespaces" || all[i].Verb != "create" {
			all[i].Namespace = s.namespace
		}
	}
	return all
}

// checkRights returns an error that names all missing rights. If the API server does not
// answer reviews, the rights are assumed to be there.
func (s *Service) checkRights(ctx context.Context) error {
	missing, err := apiserver.MissingRights(ctx, s.options.Config, s.rights())
	if err != nil || len(missing) == 0 {
		return err
	}
	names := make([]string, len(missing))
	for i, right := range missing {
		right.Namespace = ""
		names[i] = right.String()
	}
	return fmt.Errorf("rights are missing in namespace %s: %s; nothing was created", s.namespace, strings.Join(names, ", "))
}
