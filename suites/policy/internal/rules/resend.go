package rules

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// resendable finds out, before the policies are installed, how the API server's response to the creation of a sample can be
// created too: it refuses its own Jobs and Services, because of values that it chooses itself.
func (b *bench) resendable(ctx context.Context, samples []*Case) error {
	if !b.subject.mutating() {
		return nil
	}
	var all, again, whole []*Case
	for _, c := range samples {
		if c.Accepted() {
			same, sent := *c, *c
			sent.Request.Object = &unstructured.Unstructured{Object: vary.OfClient(c.Before.Fields())}
			all, again, whole = append(all, c), append(again, &same), append(whole, &sent)
		}
	}
	if err := b.send(ctx, slices.Concat(again, whole), before); err != nil {
		return err
	}
	for i, c := range all {
		c.Whole, c.chosen = whole[i].Accepted(), vary.Differences(c.Before.Fields(), again[i].Before.Fields())
	}
	return nil
}

// made returns the object of a sample with what the policies made of it, for another creation.
func (c *Case) made(after framework.Result) map[string]any {
	whole := vary.OfClient(after.Fields())
	sent, ok := c.Request.Object.(*unstructured.Unstructured)
	if c.Whole || !ok {
		return whole
	}
	before := vary.OfClient(c.Before.Fields())
	for _, path := range c.chosen {
		value, has := vary.At(before, path)
		if changed := vary.With(whole, path, func(any) (any, bool) { return value, has }); changed != nil {
			whole = changed
		}
	}
	return vary.Patched(sent.Object, object.MergePatch(before, whole))
}

// ChangedAgain returns the paths at which the policies change what they made of a sample: first compared with what they made, and
// if it was also sent without them, with the response to that.
func (c *Case) ChangedAgain() []cel.Path {
	first := c.Control.After
	if c.Before.Object != nil {
		first = c.Before
	}
	return c.Control.Changed(first, c.After, false)
}

// withoutPolicies sends what the policies seem to change again without them: the API server may change it itself, such as the
// labels of a Job, which it copies from a template.
func (b *bench) withoutPolicies(ctx context.Context, reapplied []*Case) error {
	cases := slices.DeleteFunc(slices.Clone(reapplied), func(c *Case) bool { return !c.After.Allowed() || len(c.ChangedAgain()) == 0 })
	if len(cases) == 0 {
		return nil
	}
	if err := b.only(ctx, func(unstructured.Unstructured) bool { return false }); err != nil {
		return err
	}
	return b.send(ctx, cases, before)
}

// Changed returns the paths at which two responses to creations of a sample, or of what the policies made of it, differ, apart
// from what the API server chooses. AnyOrder ignores the order of lists of objects.
func (c *Case) Changed(one, other framework.Result, anyOrder bool) []cel.Path {
	settled := func(result framework.Result) map[string]any {
		fields := vary.OfClient(result.Fields())
		for _, path := range slices.Backward(c.chosen) {
			if !c.Whole { // otherwise they were sent again
				if without := vary.With(fields, path, vary.Remove); without != nil {
					fields = without
				}
			}
		}
		if anyOrder {
			return sorted(fields)
		}
		return fields
	}
	return vary.Difference(settled(one), settled(other), nil)
}

// SetByServer reports whether an object of a sample that is sent again lacks a value that the API server sets without the policies.
func (c *Case) SetByServer(path cel.Path) bool {
	sent, _ := c.Request.Object.(*unstructured.Unstructured)
	if c.Whole || sent == nil {
		return false
	}
	_, written := vary.At(sent.Object, path)
	_, set := vary.At(c.Before.Fields(), path)
	return set && !written
}
