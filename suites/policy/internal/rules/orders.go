package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
)

// mutators returns the MutatingAdmissionPolicies that have a binding.
func (s Subject) mutators() []Policy {
	return slices.DeleteFunc(s.List(), func(p Policy) bool { return !p.Mutating() || !slices.ContainsFunc(s.Bindings(), p.isBound) })
}

// isBound reports whether a binding is one of the policy.
func (p Policy) isBound(b binding) bool {
	return b.spec.PolicyName == p.GetName() && b.GetKind() == p.GetKind()+"Binding"
}

// inOrders sends the creation of each sample with one MutatingAdmissionPolicy alone, and what it made of the sample with each
// other one alone. So for two of them, the result is known for both orders. The API server calls them in any order.
func (b *bench) inOrders(ctx context.Context) error {
	all := b.subject.mutators()
	if len(all) < 2 {
		return nil
	}
	alone := make([][]*Case, len(all)) // by the policy that was first
	for i, first := range all {
		alone[i] = b.copies(Orders, "first with only "+first.GetName())
		if err := b.only(ctx, first.isBound); err != nil {
			return err
		}
		if err := b.send(ctx, alone[i], after); err != nil {
			return err
		}
		b.observed.Alone[first.GetName()] = alone[i]
	}
	both := map[[2]int][]*Case{} // by the policies that were first and second
	for j, second := range all {
		var sent []*Case
		for i := range all {
			for _, c := range alone[i] {
				copied := *c
				copied.What += ", then with only " + second.GetName()
				if made := c.made(c.After); i != j && c.After.Allowed() && made != nil {
					copied.Request.Object, copied.After = &unstructured.Unstructured{Object: made}, framework.Result{}
					sent = append(sent, &copied)
				}
				both[[2]int{i, j}] = append(both[[2]int{i, j}], &copied)
			}
		}
		if err := b.only(ctx, second.isBound); err != nil {
			return err
		}
		if err := b.send(ctx, sent, after); err != nil {
			return err
		}
	}
	for i := range all {
		for j := range i {
			for n, c := range both[[2]int{i, j}] {
				c.Control = both[[2]int{j, i}][n]
				b.observed.Cases = append(b.observed.Cases, c)
			}
		}
	}
	return nil
}

// only makes some bindings the only ones.
func (b *bench) only(ctx context.Context, wanted func(binding) bool) error {
	var changed []map[string]any
	for _, each := range b.subject.Bindings() {
		changed = append(changed, each.Object)
		err := b.sandbox.Delete(ctx, each.GroupVersionKind(), each.GetName())
		if err == nil && wanted(each) {
			err = b.sandbox.Install(ctx, each.Object, nil)
		}
		if err != nil {
			return fmt.Errorf("have only some bindings: %s: %w", object.Describe(each.Object), err)
		}
	}
	return b.server.WaitUntilEffective(ctx, changed)
}

// forced sends what mutations can change again, with failurePolicy Fail in each MutatingAdmissionPolicy that has Ignore: the API server
// says nothing about an error that it ignores.
func (b *bench) forced(ctx context.Context) error {
	ignore := slices.DeleteFunc(b.subject.mutators(), func(p Policy) bool { return !p.IgnoresErrors() })
	if len(ignore) == 0 {
		return nil
	}
	if err := b.replace(ctx, ignore, admissionregistrationv1.Fail); err != nil {
		return err
	}
	if err := b.send(ctx, b.observed.Of(append(mutable(), Unrelated, Repairs)...), func(c *Case) *framework.Result { return &c.Forced }); err != nil {
		return err
	}
	return b.replace(ctx, ignore, admissionregistrationv1.Ignore)
}

// replace gives policies another failurePolicy.
func (b *bench) replace(ctx context.Context, policies []Policy, failure admissionregistrationv1.FailurePolicyType) error {
	var changed []map[string]any
	for _, p := range policies {
		other := p.DeepCopy()
		err := errors.Join(unstructured.SetNestedField(other.Object, string(failure), "spec", "failurePolicy"), b.sandbox.Delete(ctx, p.GroupVersionKind(), p.GetName()))
		if err == nil {
			err = b.sandbox.Install(ctx, other.Object, nil)
		}
		changed = append(changed, other.Object)
		if err != nil {
			return fmt.Errorf("have failurePolicy %s: %s: %w", failure, object.Describe(p.Object), err)
		}
	}
	return b.server.WaitUntilEffective(ctx, changed)
}

// sorted sorts the lists of objects in a value.
func sorted[T any](value T) T {
	switch value := any(value).(type) {
	case map[string]any:
		for name, each := range value {
			value[name] = sorted(each)
		}
	case []any:
		objects := true
		for i, each := range value {
			_, is := each.(map[string]any)
			objects, value[i] = objects && is, sorted(each)
		}
		if objects {
			slices.SortFunc(value, func(a, b any) int { return strings.Compare(encoded(a), encoded(b)) })
		}
	}
	return value
}

func encoded(value any) string {
	data, _ := json.Marshal(value) // it comes from JSON
	return string(data)
}
