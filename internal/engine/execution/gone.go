package execution

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// seenObject is an object that existed.
type seenObject struct {
	kind            schema.GroupKind
	namespace, name string
}

// noteSeen notes the object that a successful request wrote, read or deleted.
func (c *Case) noteSeen(request framework.Request, result framework.Result) {
	if request.DryRun || !result.Allowed() || request.Verb == framework.VerbList {
		return
	}
	metadata, _ := result.Fields()["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	c.noteExists(request, cmp.Or(request.Name, name))
}

// noteExists notes that the object of a request exists, under any of the names.
func (c *Case) noteExists(request framework.Request, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.seen[seenObject{request.Kind.GroupKind(), request.Namespace, name}] = true
	}
}

// noteInstalled notes that the scenario has an object. Names of policies get a prefix.
func (c *Case) noteInstalled(manifest map[string]any) {
	if request, _, err := c.composer().Compose(scenario.Step{Create: manifest}); err == nil {
		c.noteExists(request, request.Name, c.policyName(request.Name))
	}
}

// waitGone waits until an object does not exist. It is a mistake in the scenario if it never existed, as far
// as the scenario has seen.
func (c *Case) waitGone(ctx context.Context, request framework.Request, w scenario.Wait) error {
	var last framework.Result
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		var err error
		if last, err = c.sandbox.Send(ctx, request); err != nil {
			return false, err
		}
		c.noteSeen(request, last)
		return last.Status.Code == 404, nil
	})
	if limitEnded(err) {
		return fmt.Errorf("%w after %s: the last response was %d %s", framework.ErrTimeout, c.patience, last.Status.Code, last.Status.Message)
	}
	if err != nil {
		return err
	}
	c.noteInstalled(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": c.ID}})
	for _, namespace := range c.namespaces {
		c.noteInstalled(c.manifestOf(namespace))
	}
	for _, manifest := range c.Given {
		c.noteInstalled(manifest)
	}
	of := seenObject{request.Kind.GroupKind(), request.Namespace, request.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[of] {
		return nil
	}
	var names []string
	for one := range c.seen {
		if one.kind == of.kind && one.namespace == of.namespace {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	return asError([]*scenario.Error{c.Scenario.ErrorAt(c.path+".wait", "name",
		fmt.Sprintf("wait for %s %s to be gone: this scenario has not seen it before; expected an object that was given, or that a step wrote or read", w.Kind, w.Name),
		cmp.Or(strings.TrimPrefix(suggest.DidYouMean(request.Name, names), "; "), "check its kind, name and namespace, or wait for it first"))})
}
