package engine

import (
	"context"
	"net/url"

	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// written is an object as a write of the scenario's left it.
type written struct{ namespace, name, resourceVersion string }

// catchUp waits until the API server's cache has the scenario's last write of the
// kind that a request is about to change. An update or a deletion starts from
// the cached object; from a stale one, it is admitted in vain, fails to be
// stored, and is admitted again, so that webhooks see calls that depend on the
// moment (k8s.io/apiserver/pkg/storage/cacher). A read of at least that version
// is answered from the cache, once it is there. What it answers, if anything,
// is of no interest: the request itself will tell.
func (c *scenarioCase) catchUp(ctx context.Context, request framework.Request) {
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
	_, _ = c.target.Do(ctx, framework.Request{
		Verb: framework.VerbGet, Kind: request.Kind, Namespace: last.namespace, Name: last.name,
		Options: url.Values{"resourceVersion": {last.resourceVersion}},
	})
}

// wrote remembers what a request has written, for catchUp.
func (c *scenarioCase) wrote(request framework.Request, result framework.Result) {
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
	if c.writes == nil {
		c.writes = map[schema.GroupKind]written{}
	}
	c.writes[request.Kind.GroupKind()] = written{request.Namespace, name, version}
}
