package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
)

// compose returns the Request of a step, and what it does in words. That there is no such kind is a mistake in the
// scenario, unless only this API server lacks it.
func (c *Case) compose(step scenario.Step) (framework.Request, string, error) {
	request, action, err := c.composer().Compose(step)
	if err != nil && !errors.Is(err, framework.ErrNotServed) {
		err = &expect.MistakeError{Problems: []*scenario.Error{c.Scenario.ErrorAt(c.path, "", action+": "+err.Error(), "")}, Cause: err}
	}
	if err == nil {
		err = c.unchangeable(step, request)
	}
	return request, action, err
}

// request sends the request of a step and judges the result.
func (c *Case) request(ctx context.Context, step scenario.Step) *Failure {
	request, action, err := c.compose(step)
	if err != nil {
		return failed(action, err)
	}
	var result framework.Result
	var mismatches []expect.Mismatch
	var notSaid string
	once := func() error {
		result, err = c.send(ctx, request)
		if other := cmp.Or(c.panicked(ctx, err, &result), c.foreignRefusal(ctx, step.Then, request, result)); other != nil {
			return other
		}
		if err == nil {
			err = c.misspelt(step, result)
		}
		if err != nil {
			return err
		}
		mismatches, err = c.judge(ctx, step.Then, &result)
		if err == nil {
			mismatches, notSaid = c.judgeRefuser(step.Then, result, mismatches)
		}
		return err
	}
	if step.Eventually {
		err = c.eventually(ctx, once, func() bool { return len(mismatches) == 0 })
		if limitEnded(err) && result.Status.Code != 0 {
			err = nil // the mismatches say more than the timeout
		}
	} else {
		err = once()
	}
	if other := (*mismatchError)(nil); errors.As(err, &other) {
		return c.judged(ctx, Failure{Step: expect.Step{Action: action, Mismatches: other.mismatches, Result: result}}, nil, "")
	}
	if err == nil {
		err = c.waitForLabels(ctx, request, result)
	}
	if err != nil {
		return &Failure{Step: expect.Step{Action: action, Result: result}, Err: err}
	}
	c.keep(step.ID, result)
	c.answers.add(result)
	if len(mismatches) > 0 {
		return c.judged(ctx, Failure{Step: expect.Step{Action: action, Expect: step.Then, Mismatches: mismatches, Result: result, Request: &request}}, []framework.Result{result}, notSaid)
	}
	return failed(action, c.vacuous(ctx, step.Then, request.Kind.GroupVersion(), result))
}

// send sends a request, and notes what later steps must know.
func (c *Case) send(ctx context.Context, request framework.Request) (framework.Result, error) {
	c.waitForCache(ctx, request)
	do := c.sandbox.Do
	if c.inner {
		do = c.sandbox.Send // the outer step records the calls, and Result.Trace of each would have all of them
	}
	result, err := do(ctx, request)
	if result.Status.Code != 0 {
		if c.observe != nil {
			c.observe(c.Scenario.Metadata.Name, result)
		}
		c.noteWrite(request, result)
	}
	return result, err
}

// waitForLabels waits until the API server acts on the labels of a namespace, if a request changed it.
// Requests of a script or of parallel steps do not wait.
func (c *Case) waitForLabels(ctx context.Context, request framework.Request, result framework.Result) error {
	changes := request.Verb == framework.VerbUpdate || request.Verb == framework.VerbPatch || request.Verb == framework.VerbApply
	namespace := request.Kind.GroupKind() == schema.GroupKind{Kind: "Namespace"} && request.Subresource == ""
	if c.inner || !changes || !namespace || request.DryRun || !result.Allowed() {
		return nil
	}
	return c.target.WaitUntilEffective(ctx, []map[string]any{{"apiVersion": "v1", "kind": "Namespace"}})
}

// panicLimit limits the wait for the audit event of a request that got no response.
const panicLimit = 2 * time.Second

// panicked returns a mismatchError if a request got no response because a plugin panicked: an API
// server aborts such a request. Only a server that records the calls of plugins shows it.
func (c *Case) panicked(ctx context.Context, err error, result *framework.Result) error {
	read := c.target.Optional().Audit
	if !errors.Is(err, framework.ErrNoResponse) || read == nil || result.AuditID == "" ||
		!slices.Contains(c.target.Info().Capabilities, framework.CapabilityObservedPlugins) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, panicLimit)
	defer cancel()
	event, err := read(ctx, result.AuditID)
	if err != nil {
		return nil // the error of the request says enough
	}
	result.Trace = result.Trace.With(event.Plugins)
	for index, call := range result.Trace {
		if call.Plugin != nil && call.Plugin.Panicked != "" {
			return &mismatchError{[]expect.Mismatch{{
				Path: "plugins", Expected: "no panic", Call: &index,
				Actual: fmt.Sprintf("plugin %s panicked: %s; the API server did not answer the request", call.Plugin.Name, call.Plugin.Panicked),
			}}}
		}
	}
	return nil
}

// unobserved returns what was expected and could not be observed, or "".
func unobserved(want *scenario.Expectation, result framework.Result) string {
	if want != nil && (want.Audit != nil || want.Plugins != nil) && result.Audit == nil {
		return fmt.Sprintf("no audit event arrived within %s", auditLimit)
	}
	return ""
}

// eventually repeats a request until it holds. A lost response is repeated too; if the
// last one was lost, that is the error.
func (c *Case) eventually(ctx context.Context, once func() error, holds func() bool) error {
	var lost error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		err := once()
		if lost = nil; errors.Is(err, framework.ErrNoResponse) {
			lost = err
			return false, nil
		}
		return err == nil && holds(), err
	})
	if lost != nil {
		return lost
	}
	return err
}

// judge adds the audit event to a result, if it is needed, and compares the result with
// the expectation.
func (c *Case) judge(ctx context.Context, want *scenario.Expectation, result *framework.Result) ([]expect.Mismatch, error) {
	if want != nil && (want.Audit != nil || want.Plugins != nil) {
		read := c.target.Optional().Audit
		if read == nil {
			return nil, errors.New("read audit event: this target cannot read the audit log of the API server: add audit to needs")
		}
		ctx, cancel := context.WithTimeout(ctx, auditLimit)
		defer cancel()
		event, err := read(ctx, result.AuditID)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		result.Audit = event
		if event != nil {
			result.Trace = result.Trace.With(event.Plugins)
		}
	}
	return expect.Judge(want, *result), nil
}

// keep stores a result for the placeholders of later steps.
func (c *Case) keep(id string, result framework.Result) {
	if id == "" {
		return
	}
	calls := make([]any, 0, len(result.Trace))
	for _, call := range result.Trace {
		if call.Plugin != nil {
			continue
		}
		calls = append(calls, map[string]any{"webhook": call.Webhook, "request": call.Request(), "connection": call.Connection})
	}
	var status map[string]any
	if data, err := json.Marshal(result.Status); err == nil {
		_ = json.Unmarshal(data, &status)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[id] = map[string]any{"object": result.Fields(), "calls": calls, "status": status}
}

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

// noteWrite notes what a request has written, for waitForCache, and that its object exists.
func (c *Case) noteWrite(request framework.Request, result framework.Result) {
	if request.DryRun || !result.Allowed() {
		return
	}
	metadata, _ := result.Fields()["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	name, _ := metadata["name"].(string)
	c.see(request.Kind.GroupKind(), request.Namespace, cmp.Or(request.Name, name))
	switch request.Verb {
	case framework.VerbGet, framework.VerbList, framework.VerbConnect:
		return
	}
	if version == "" || name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes[request.Kind.GroupKind()] = written{request.Namespace, name, version}
}

// identity says which object this is. The namespace of a cluster-scoped object is that of the scenario.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func (c *Case) identityOf(kind schema.GroupKind, namespace, name string) identity {
	return identity{kind, cmp.Or(namespace, c.ID), name}
}

// see notes that an object exists, or existed.
func (c *Case) see(kind schema.GroupKind, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[c.identityOf(kind, namespace, name)] = true
}

// seeManifest is see for an object that was installed.
func (c *Case) seeManifest(manifest map[string]any) {
	subject := unstructured.Unstructured{Object: manifest}
	name := subject.GetName()
	if object.IsAdmission(manifest) {
		name = c.policyName(name)
	}
	c.see(kindOf(manifest).GroupKind(), subject.GetNamespace(), name)
}
