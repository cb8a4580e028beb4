package fence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// maxCreations limits how many different creations are tried on an aggregated API server: it can refuse some.
const maxCreations = 8

// aggregated is an aggregated API server, which has caches of its own.
type aggregated struct {
	// creations are dry runs of creations, without the name. One that the API server allows shows which
	// sentinels are effective there.
	creations []creation
	// err is why it is not known what is effective there, or nil.
	err error
}

type creation struct {
	resource client.Resource
	object   map[string]any
}

// Note notes the API server that a request of a scenario is for. If that is an aggregated one, Wait
// also waits for it from then on.
func (f *Fences) Note(request client.Request) {
	server := f.Client.Resources.Aggregated(request.Resource.GroupVersion())
	if server == "" || request.Subresource != "" || f.Install.Shared && !request.Resource.Namespaced {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servers == nil {
		f.servers = map[string]*aggregated{}
	}
	if f.servers[server] == nil {
		f.servers[server] = &aggregated{}
	}
	known := f.servers[server]
	switch {
	case len(known.creations) >= maxCreations:
	case request.Verb == framework.VerbCreate && request.Object != nil:
		known.creations = slices.Insert(known.creations, 0, creation{request.Resource, (framework.Result{Object: request.Object}).Fields()})
	case len(known.creations) == 0:
		known.creations = []creation{{request.Resource, map[string]any{"apiVersion": request.Kind.GroupVersion().String(), "kind": request.Kind.Kind}}}
	}
}

// Effective returns an error if it is not known whether what was installed is effective for a request, because
// Wait has waited in vain for the aggregated API server that serves the resource.
func (f *Fences) Effective(request client.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.servers[f.Client.Resources.Aggregated(request.Resource.GroupVersion())]; known != nil {
		return known.err
	}
	return nil
}

// waitForAggregated waits for the aggregated API servers that are noted. If one does not use the sentinels in
// time, requests to it fail from then on, and others do not.
func (f *Fences) waitForAggregated(ctx context.Context, current *fence, interval time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(current.servers)) {
		missing := ""
		err := client.Poll(ctx, interval, f.Limit, func() (bool, error) {
			var err error
			for _, one := range current.servers[name] {
				_, missing, err = f.send(ctx, current, one.dryRun(current))
				if err != nil || missing == "" {
					break
				}
			}
			return missing == "", errors.Join(err, f.HooksErr())
		})
		if ctx.Err() != nil || f.HooksErr() != nil {
			return errors.Join(err, f.HooksErr())
		}
		if err != nil {
			f.mu.Lock()
			f.servers[name].err = fmt.Errorf("wait until the aggregated API server %s uses the installed configurations: %w: not effective yet: %s; it may lack a right to read them (see `admissiontest rbac --aggregated`)", name, err, missing)
			f.mu.Unlock()
		}
	}
	return nil
}

// aggregatedServers returns the creations on the aggregated API servers to wait for.
func (f *Fences) aggregatedServers() map[string][]creation {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string][]creation{}
	for name, known := range f.servers {
		if known.err == nil {
			found[name] = slices.Clone(known.creations)
		}
	}
	return found
}

// dryRun returns the request.
func (c creation) dryRun(of *fence) client.HTTPRequest {
	object, namespace := maps.Clone(c.object), ""
	object["metadata"] = map[string]any{"name": of.probe()}
	if c.resource.Namespaced {
		namespace = of.scope.ID
	}
	return dryRun(c.resource.GroupVersionResource, namespace, object)
}

// rules returns the rules of the sentinels, which match all dry runs.
func (f *fence) rules() []any {
	all := ProbeRules()
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		for _, one := range f.servers[name] {
			all = append(all, map[string]any{
				"operations": []any{"CREATE"}, "apiGroups": []any{one.resource.Group}, "apiVersions": []any{one.resource.Version}, "resources": []any{one.resource.Resource},
			})
		}
	}
	return all
}
