package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// reachTimeout is the timeoutSeconds of the webhooks that probe: how long an
// address that swallows everything delays the answer.
const reachTimeout = 2

// Reach finds out which Hook servers an API server gets through to, by having it
// call each: it installs one validating webhook for each server, which match
// nothing but dry-run requests in a namespace of the run's own and may fail, and
// sends such requests until one arrives anywhere or limit is over. The answer
// has one entry for each server, and is false for all where none was called.
//
// It removes what it created: where a server was reached, the namespace ends with
// the run, since a namespace takes its time; otherwise it waits for that too. An
// error means that it could not ask, rights for instance.
func Reach(ctx context.Context, options Options, servers []*hook.Server, limit time.Duration) (reached []bool, err error) {
	reached = make([]bool, len(servers))
	if len(servers) == 0 {
		return reached, nil
	}
	options.Hooks, options.Disposable = servers[0], true // Close must not remove: this does
	t, err := New(ctx, options)
	if err != nil {
		return reached, err
	}
	id := "at-" + t.options.Run + "-reach"
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachRemoveLimit)
		defer cancel()
		if removed := t.endReach(clean, id, err == nil && slices.Contains(reached, true)); removed != nil {
			err = errors.Join(err, fmt.Errorf("probe the way to our webhooks: %w", removed))
		}
	}()
	if err := t.Open(ctx, id); err != nil {
		return reached, fmt.Errorf("probe the way to our webhooks: %w", err)
	}
	if err := t.putReach(ctx, id, servers); err != nil {
		return reached, fmt.Errorf("probe the way to our webhooks: %w", err)
	}
	probe := (&fence{id: id}).probe()
	var refused error
	err = poll(ctx, later, limit, func() (bool, error) {
		if _, refused = t.request(ctx, probe); errors.Is(refused, framework.ErrLost) {
			return false, refused
		}
		for i, server := range servers {
			// All are called for one request, which has its answer when all have.
			reached[i] = len(server.Calls(id)) > 0
		}
		return slices.Contains(reached, true), nil
	})
	for _, server := range servers {
		server.Forget(id)
	}
	if errors.Is(err, framework.ErrNotSettled) {
		err = refused // an API server that answered as it should just does not get through
	}
	if err != nil {
		err = fmt.Errorf("probe the way to our webhooks: %w", err)
	}
	return reached, err
}

// reachRemoveLimit bounds the removal of what Reach created.
const reachRemoveLimit = time.Minute

// putReach installs the webhooks, in one configuration: they come into force
// together.
func (t *Target) putReach(ctx context.Context, id string, servers []*hook.Server) error {
	rules := []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "scope": "Namespaced"}}
	var webhooks []any
	for i, server := range servers {
		name := fmt.Sprintf("n%d.reach.admissiontest.dev", i)
		endpoint, err := server.Register(hook.Hook{Owner: id, Configuration: "reach", Webhook: name, Phase: framework.Validating})
		if err != nil {
			return err
		}
		webhooks = append(webhooks, map[string]any{
			"name": name, "rules": rules, "failurePolicy": "Ignore", "timeoutSeconds": int64(reachTimeout),
			"sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"url": endpoint.URL, "caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle)},
		})
	}
	gvk := schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kindValidatingWebhooks}
	res, err := t.resources.of(gvk)
	if err != nil {
		return err
	}
	manifest := map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind,
		"metadata": map[string]any{"name": "reach"}, "webhooks": webhooks,
	}
	ref := reference{resource: res, name: id + "-reach"}
	t.remember(id, func(o *owner) { o.governing = append(o.governing, ref) })
	return t.replace(ctx, ref, t.own(id, t.resources.narrow(gvk, manifest, id)))
}

// endReach removes what Reach created, and does not wait for the namespace where
// a run follows that will.
func (t *Target) endReach(ctx context.Context, id string, follows bool) error {
	defer t.client.CloseIdleConnections()
	if !follows {
		return t.removeAll(ctx)
	}
	if err := t.Disarm(ctx, id); err != nil {
		return err
	}
	_, err := t.request(ctx, call{method: http.MethodDelete, path: "/api/v1/namespaces/" + id}, http.StatusNotFound, http.StatusConflict)
	return err
}
