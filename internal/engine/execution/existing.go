package execution

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/placeholder"
	"github.com/admissiontest/admissiontest/internal/engine/requests"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Names are the cluster-scoped objects that cases use one at a time, by their kinds and names.
type Names struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// take waits until no other case uses a name, and returns how to release it.
func (n *Names) take(ctx context.Context, name string) (release func(), err error) {
	n.mu.Lock()
	if n.taken == nil {
		n.taken = map[string]chan struct{}{}
	}
	if n.taken[name] == nil {
		n.taken[name] = make(chan struct{}, 1)
	}
	slot := n.taken[name]
	n.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// recognizesFieldManager reports whether webhooks and policies can recognize the requests of a PolicyTest for
// cluster-scoped objects by their field manager: the objects have the names that the test gives them. An object
// that has only a name has no field manager, by which its deletion would be recognized.
func (c *Case) recognizesFieldManager() bool {
	return !c.Open() && !slices.ContainsFunc(c.Scenario.Spec.When, func(step scenario.Step) bool {
		if step.Delete == nil {
			return false
		}
		index := c.existingFor(objectOf(step))
		return index >= 0 && bare(c.Given[index])
	})
}

// bare reports whether a manifest says no more than which object it is, and its status: other fields have no
// values, or those that an API server can leave out.
func bare(manifest map[string]any) bool {
	var empty func(path string, value any) bool
	empty = func(path string, value any) bool {
		switch value := value.(type) {
		case map[string]any:
			for name, inner := range value {
				if name := path + "." + name; name != ".status" && !empty(name, inner) {
					return false
				}
			}
			return true
		case []any:
			return len(value) == 0
		}
		return slices.Contains([]string{".apiVersion", ".kind", ".metadata.name"}, path) || value == nil || reflect.ValueOf(value).IsZero()
	}
	return empty("", manifest)
}

// withFieldManager adds the field manager to such a request. A request to delete has none.
func (c *Case) withFieldManager(step scenario.Step, request framework.Request) scenario.Step {
	namespaced, err := c.namespaced(request.Kind)
	if !c.byFieldManager || err != nil || namespaced || step.Create == nil && step.Patch == nil {
		return step
	}
	step.Options = map[string]string{"fieldManager": runid.CaseManager(c.ID)}
	return step
}

// SharesNames reports whether the case can run beside others that use the same names of cluster-scoped
// objects. A policy with parameters can refuse a request before it looks at the field manager.
func (c *Case) SharesNames() bool { return c.byFieldManager && !object.HasParams(c.Given) }

// isExisting reports whether a manifest of Given only exists for the requests of the cases.
func (c *Case) isExisting(index int) bool { return index >= len(c.Given)-c.Scenario.Existing }

// oneAtATime reports whether an object only exists while a case runs, so that no other case meets it. A
// webhook configuration or policy is then the object of a request: it does not decide for the case.
func (c *Case) oneAtATime(manifest map[string]any) bool {
	return object.IsAdmission(manifest) || c.SharesNames() && !c.Namespaced(manifest)
}

// Installed returns what Arrange installs: Given without what only exists while the case runs.
func (c *Case) Installed() []map[string]any {
	var out []map[string]any
	for i, manifest := range c.Given {
		if !c.isExisting(i) || !c.oneAtATime(manifest) {
			out = append(out, manifest)
		}
	}
	return out
}

// Requests returns the requests that create what the scenario is given, and the requests of its steps, as far as
// they are known before it runs.
func (c *Case) Requests() (given, steps []framework.Request) {
	s := c.Scenario
	spec, err := placeholder.Replace(s.Spec, func(name string) (any, bool) {
		if value, ok := c.lookup(name); ok {
			return value, true
		}
		return "$(" + name + ")", true
	})
	if err != nil {
		return nil, nil
	}
	s.Spec = spec
	composer := c.composer()
	composer.Namespaced = func(kind schema.GroupVersionKind) (bool, error) {
		namespaced, err := c.namespaced(kind)
		return err == nil && namespaced, nil
	}
	return requests.Given(s), composer.Steps(s)
}

// prepare makes the object exist that the request of a case of a PolicyTest is for, and keeps other
// cases from its name. The returned function ends that.
func (c *Case) prepare(ctx context.Context) (end func(context.Context) error, err error) {
	end = func(context.Context) error { return nil }
	subject := c.subject()
	if subject == nil {
		return end, nil
	}
	index := c.existingFor(subject)
	if index >= 0 && c.existing[index] != nil {
		return end, c.existing[index]
	}
	if !c.oneAtATime(subject) {
		return end, nil
	}
	release, err := c.names.take(ctx, object.Describe(subject))
	if err != nil {
		return end, err
	}
	if index < 0 {
		return func(context.Context) error { release(); return nil }, nil
	}
	end = func(ctx context.Context) error {
		defer release()
		return c.sandbox.RemoveStored(ctx, c.Given[index])
	}
	err = c.asWritten(ctx, c.sandbox.Store(ctx, c.Given[index]), c.Given[index])
	return end, c.installed(err, fmt.Sprintf("given[%d]", index), c.Given[index])
}

// subject returns the object that the request of a case of a PolicyTest is for, or nil. It has no more
// than what names it, unless the request creates it.
func (c *Case) subject() map[string]any {
	if !c.Scenario.IsPolicyTest() || len(c.Scenario.Spec.When) == 0 {
		return nil
	}
	step, err := placeholder.Replace(c.Scenario.Spec.When[len(c.Scenario.Spec.When)-1], c.lookup)
	if err != nil {
		return nil // carrying it out reports the error
	}
	return objectOf(step)
}

// objectOf returns the object that a step creates, patches or deletes, or nil.
func objectOf(step scenario.Step) map[string]any {
	var of scenario.ObjectReference
	switch {
	case step.Create != nil:
		return step.Create
	case step.Patch != nil:
		of = step.Patch.ObjectReference
	case step.Delete != nil:
		of = step.Delete.ObjectReference
	default:
		return nil
	}
	metadata := map[string]any{"name": of.Name}
	if of.Namespace != nil {
		metadata["namespace"] = *of.Namespace
	}
	return map[string]any{"apiVersion": of.APIVersion, "kind": of.Kind, "metadata": metadata}
}

// existingFor returns the index in Given of an object that exists for requests, or -1.
func (c *Case) existingFor(subject map[string]any) int {
	want := unstructured.Unstructured{Object: subject}
	return slices.IndexFunc(c.Given, func(manifest map[string]any) bool {
		is := unstructured.Unstructured{Object: manifest}
		return is.GroupVersionKind().GroupKind() == want.GroupVersionKind().GroupKind() && is.GetName() == want.GetName() && is.GetNamespace() == want.GetNamespace()
	})
}
