package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// ErrRightsMissing marks rights that are missing for a run.
var ErrRightsMissing = errors.New("rights are missing")

// Right is one action that a user must be allowed to do.
type Right = client.Right

// RunRights returns the rights that every run needs: to create and remove namespaces, to fence, and to find aggregated
// and other API servers. What a scenario needs besides, the API server checks itself: it refuses the request, and says why.
func RunRights() []Right {
	rights := []Right{
		{Verb: "update", Resource: "namespaces", Subresource: "finalize"},
		{Verb: "list", Group: "apiregistration.k8s.io", Resource: "apiservices"},
		{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: "default"},
	}
	for _, of := range []Right{
		{Resource: "namespaces"}, {Resource: "configmaps"},
		{Group: install.AdmissionGroup, Resource: "mutatingwebhookconfigurations"}, {Group: install.AdmissionGroup, Resource: "validatingwebhookconfigurations"},
	} {
		for _, of.Verb = range []string{"create", "get", "list", "update", "patch", "delete"} {
			rights = append(rights, of)
		}
	}
	return rights
}

// RequireRights finds out whether the user of a configuration has rights. The error is an ErrRightsMissing that names each
// missing one. Nothing is created. If the API server does not answer reviews, no right counts as missing.
func RequireRights(ctx context.Context, config *rest.Config, needed []Right) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	missing, err := c.Missing(ctx, needed)
	if err != nil || len(missing) == 0 {
		return err
	}
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String()
	}
	return fmt.Errorf("user %s: %w: %s; nothing was created; \"admissiontest rbac\" prints the roles that a run needs",
		cmp.Or(c.UserName(ctx), "of the kubeconfig"), ErrRightsMissing, strings.Join(texts, ", "))
}
