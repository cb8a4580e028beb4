package execution

import (
	"context"
	"net/url"

	"github.com/admissiontest/admissiontest/framework"
)

// written is an object as a write of the scenario left it.
type written struct{ namespace, name, resourceVersion string }

// waitForCache waits until the API server's cache has the last write of the scenario to
// the kind that a request is about to change. An update or delete starts from the cached
// object: from a stale one it is admitted, fails to be stored, and is admitted again, so
// that the number of webhook calls varies (k8s.io/apiserver/pkg/storage/cacher). A read
// with that resourceVersion is answered once the cache has it. Its response does not
// matter.
func (c *Case) waitForCache(ctx context.Context, request framework.Request) {
	switch request.Verb {
	case framework.VerbUpdate, framework.VerbPatch, framework.VerbApply, framework.VerbDelete, framework.VerbDeleteCollection:
	default:
		return
	}
	c.mu.Lock()
	last, ok := c.writes[request.Kind.GroupKind()]
	c.mu.Unlock()
	if !ok {
		return
	}
	_, _ = c.sandbox.Send(ctx, framework.Request{
		Verb: framework.VerbGet, Kind: request.Kind, Namespace: last.namespace, Name: last.name,
		HTTP: framework.HTTP{Query: url.Values{"resourceVersion": {last.resourceVersion}}},
	})
}

// noteWrite notes what a request has written, for waitForCache.
func (c *Case) noteWrite(request framework.Request, result framework.Result) {
	switch {
	case request.Verb == framework.VerbGet, request.Verb == framework.VerbList, request.Verb == framework.VerbConnect:
		return
	case request.DryRun, !result.Allowed():
		return
	}
	metadata, _ := result.Fields()["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	name, _ := metadata["name"].(string)
	if version == "" || name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes[request.Kind.GroupKind()] = written{request.Namespace, name, version}
}
