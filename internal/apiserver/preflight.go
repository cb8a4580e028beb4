package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/fence"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// reachRemoveLimit limits the removal of what CanCall created.
const reachRemoveLimit = time.Minute

// CanCall returns for each Hook server whether the API server can call it. It installs
// webhooks that match only dry-run requests in a namespace of the run, and sends such
// requests until one of the servers is called or the limit is reached.
//
// It removes what it created. If a server was called, the end of the run that follows waits for that, and
// reports what is left. An error means that it could not find out, because of missing rights for instance:
// it is an apierrors.APIStatus if the API server refuses something and nothing is left.
func CanCall(ctx context.Context, options Options, servers []*hook.Server, limit time.Duration) (reached []bool, err error) {
	reached = make([]bool, len(servers))
	if len(servers) == 0 {
		return reached, nil
	}
	options.Hooks, options.Disposable, options.Served = servers[0], true, false // Close must not remove
	t, err := New(ctx, options)
	if err != nil {
		return reached, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("find out whether the API server can call webhooks of this process: %w", err)
		}
		err = errors.Join(err, t.Close(ctx))
	}()
	scope, err := t.installer.NewScope(ctx, runid.Prefix(t.options.Run)+"-reach", hook.Conversion{})
	if err == nil {
		reached, err = fence.HookServers(ctx, t.installer, scope, servers, limit)
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachRemoveLimit)
	defer cancel()
	if scope == nil || err != nil || !slices.Contains(reached, true) {
		if left := t.remover.removeRun(clean, t.options.Run); left != nil {
			err = t.notRemoved(errors.Join(err, left))
		}
		return reached, err
	}
	_ = errors.Join(t.installer.Uninstall(clean, scope), t.client.Delete(clean, client.Namespace(scope.ID)))
	return reached, nil
}

// Limited returns a copy of a configuration whose responses are read with limits, as the responses of a Target are: of
// bytes after decompression, of JSON values, and of time. Do not use it for requests that have no end.
func Limited(config *rest.Config) *rest.Config { return client.Limited(config) }

// WaitForResponse waits until the API server responds, with whatever status, or until
// the limit. The error is a framework.ErrNoResponse.
func WaitForResponse(ctx context.Context, config *rest.Config, limit time.Duration) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %s", limit))
	defer cancel()
	err = c.Ping(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%w: %w", framework.ErrNoResponse, context.Cause(limited))
	}
	return err
}

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
		cmp.Or(c.User(ctx).Name, "of the kubeconfig"), ErrRightsMissing, strings.Join(texts, ", "))
}
