package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// mutators returns the MutatingAdmissionPolicies that have a binding.
func (s Subject) mutators() []Policy {
	return slices.DeleteFunc(s.List(), func(p Policy) bool { return !p.Mutating() || !slices.ContainsFunc(s.Bindings(), p.isBound) })
}

// Mutators returns the number of MutatingAdmissionPolicies that have a binding.
func (s Subject) Mutators() int { return len(s.mutators()) }

// isBound reports whether a binding is one of the policy.
func (p Policy) isBound(b unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
	return name == p.GetName() && b.GetKind() == p.GetKind()+"Binding"
}

// inOrders sends the creation of each sample with one MutatingAdmissionPolicy alone, and what it made of the sample with each
// other one alone. So for two of them, the result is known for both orders. The API server calls them in any order.
func (b *bench) inOrders(ctx context.Context) error {
	all := b.subject.mutators()
	if len(all) < 2 {
		return nil
	}
	first := make([][]*Case, len(all)) // by the policy that was first
	for i, p := range all {
		if err := b.only(ctx, p.isBound); err != nil {
			return err
		}
		for _, c := range b.observed.Of(Samples, Fixes) {
			copied := *c
			copied.After, copied.Control = framework.Result{}, nil
			if c.Whole {
				copied.Request.Object = &unstructured.Unstructured{Object: vary.OfClient(c.Before.Fields())}
			}
			first[i] = append(first[i], &copied)
		}
		if err := b.send(ctx, first[i], after); err != nil {
			return err
		}
	}
	second := make([][][]*Case, len(all)) // by the policy that was second, and the one that was first
	for i := len(all) - 1; i >= 0; i-- {
		if err := b.only(ctx, all[i].isBound); err != nil {
			return err
		}
		second[i] = make([][]*Case, len(all))
		for j := range all {
			var accepted []*Case
			for _, c := range first[j] {
				copied := *c
				copied.Group, copied.What = Orders, fmt.Sprintf("%s, first with only %s, then with only %s", c.What, all[j].GetName(), all[i].GetName())
				if copied.After.Allowed() {
					copied.Request.Object, copied.After = &unstructured.Unstructured{Object: c.made(c.After)}, framework.Result{}
					accepted = append(accepted, &copied)
				}
				second[i][j] = append(second[i][j], &copied)
			}
			if i == j {
				continue
			}
			if err := b.send(ctx, accepted, after); err != nil {
				return err
			}
		}
	}
	for i := range all {
		for j := range i {
			for n, c := range second[i][j] {
				c.Control = second[j][i][n]
				b.observed.Cases = append(b.observed.Cases, c)
			}
		}
	}
	return nil
}

// only makes some bindings the only ones.
func (b *bench) only(ctx context.Context, wanted func(unstructured.Unstructured) bool) error {
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
