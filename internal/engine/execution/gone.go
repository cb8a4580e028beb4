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
	"github.com/admissiontest/admissiontest/internal/engine/mistake"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// seenObject is an object that existed.
type seenObject struct {
	kind            schema.GroupKind
	namespace, name string
}

// noteSeenAt notes that a successful request wrote, read or deleted an object.
func (c *Case) noteSeenAt(request framework.Request, result framework.Result) {
	if request.DryRun || !result.Allowed() || request.Verb == framework.VerbList {
		return
	}
	metadata, _ := result.Fields()["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[seenObject{request.Kind.GroupKind(), request.Namespace, cmp.Or(request.Name, name)}] = true
}

// noteSeen notes that the scenario installed an object. Some names get a prefix.
func (c *Case) noteSeen(manifest map[string]any) {
	request, _, err := c.composer().Compose(scenario.Step{Create: manifest})
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{request.Name, c.policyName(request.Name)} {
		c.seen[seenObject{request.Kind.GroupKind(), request.Namespace, name}] = true
	}
}

// waitGone waits until an object does not exist. It is a mistake in the scenario if it never existed, as far
// as the scenario has seen.
func (c *Case) waitGone(ctx context.Context, request framework.Request, w scenario.Wait) error {
	var last framework.Result
	existed := false
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		var err error
		if last, err = c.sandbox.Send(ctx, request); err != nil {
			return false, err
		}
		c.secretsIn(request, last)
		existed = existed || last.Allowed()
		return last.Status.Code == 404, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w after %s: the last response was %d %s", framework.ErrTimeout, c.patience, last.Status.Code, last.Status.Message)
	}
	if err != nil || existed {
		return err
	}
	for _, manifest := range slices.Concat(c.Given, c.namespaceManifests()) {
		c.noteSeen(manifest)
	}
	of := seenObject{request.Kind.GroupKind(), request.Namespace, request.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[of] {
		return nil
	}
	var names []string
	for one := range c.seen {
		if one.kind == of.kind {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	hint := strings.TrimPrefix(suggest.DidYouMean(request.Name, names), "; ")
	return &mistake.Error{Problems: []*scenario.Error{c.Scenario.ErrorAt(c.place+".wait", "name",
		fmt.Sprintf("wait for %s %s to be gone: it never existed, as far as this scenario has seen; expected an object that was given, or that a step wrote or read", w.Kind, w.Name),
		cmp.Or(hint, "check its kind, name and namespace"))}}
}

// namespaceManifests returns the namespaces of the scenario.
func (c *Case) namespaceManifests() []map[string]any {
	all := []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": c.ID}}}
	for _, one := range c.namespaces {
		all = append(all, c.manifestOf(one))
	}
	return all
}
