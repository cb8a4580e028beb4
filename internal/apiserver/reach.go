package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/fence"
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
