package execution

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// isExisting reports whether a manifest of Given only exists for the requests of the cases.
func (c *Case) isExisting(index int) bool { return index >= len(c.Given)-c.Scenario.Existing }

// oneAtATime reports whether an object only exists while the case of its request runs: a webhook configuration or policy
// is then the object of a request, and does not decide for the case.
func (c *Case) oneAtATime(manifest map[string]any) bool { return object.IsAdmission(manifest) }

// stores reports whether an object only exists while a case runs. Then the requests of all cases are dry runs.
func (c *Case) stores() bool { return len(c.Installed()) < len(c.Given) }

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
	spec, err := scenario.Replace(s.Spec, func(name string) (any, bool) {
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
	return Given(s), composer.Steps(s)
}

// prepare makes the object exist that the request of a case of a PolicyTest is for, if it exists only for that. Uninstall
// removes it, after the policies of the case: they can refuse that.
func (c *Case) prepare(ctx context.Context) error {
	subject := c.subject()
	if subject == nil {
		return nil
	}
	index := c.existingFor(subject)
	switch {
	case index < 0:
		return nil
	case c.existing[index] != nil:
		return c.existing[index]
	case !c.oneAtATime(subject):
		return nil
	}
	err := c.asWritten(ctx, c.sandbox.Store(ctx, c.Given[index]), c.Given[index])
	return c.installed(err, fmt.Sprintf("given[%d]", index), c.Given[index])
}

// subject returns the object that the request of a case of a PolicyTest is for, or nil. It has no more
// than what names it, unless the request creates it.
func (c *Case) subject() map[string]any {
	if !c.Scenario.IsPolicyTest() || len(c.Scenario.Spec.When) == 0 {
		return nil
	}
	step, err := scenario.Replace(c.Scenario.Spec.When[len(c.Scenario.Spec.When)-1], c.lookup)
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
