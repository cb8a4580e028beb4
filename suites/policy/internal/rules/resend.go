package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
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
func (c *Case) made(after framework.Result) (map[string]any, error) {
	object := vary.OfClient(after.Fields())
	if c.Whole {
		return object, nil
	}
	before := vary.OfClient(c.Before.Fields())
	for _, path := range c.chosen {
		value, has := vary.At(before, path)
		if changed := vary.With(object, path, func(any) (any, bool) { return value, has }); changed != nil {
			object = changed
		}
	}
	var texts [3][]byte
	for i, each := range []any{before, object, c.Request.Object} {
		text, err := json.Marshal(each)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.What, err)
		}
		texts[i] = text
	}
	patch, err := jsonpatch.CreateMergePatch(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s: what the policies changed: %w", c.What, err)
	}
	patched, err := jsonpatch.MergePatch(texts[2], patch)
	if err != nil {
		return nil, fmt.Errorf("%s: what the policies changed: %w", c.What, err)
	}
	made := &unstructured.Unstructured{}
	err = made.UnmarshalJSON(patched)
	return made.Object, err
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
	var deleted []map[string]any
	for _, each := range b.subject.Bindings() {
		if err := b.sandbox.Delete(ctx, each.GroupVersionKind(), each.GetName()); err != nil {
			return fmt.Errorf("delete %s %s: %w", each.GetKind(), each.GetName(), err)
		}
		deleted = append(deleted, each.Object)
	}
	if err := b.server.WaitUntilEffective(ctx, deleted); err != nil {
		return err
	}
	return b.send(ctx, cases, before)
}

// Changed returns the paths at which two responses to creations of a sample, or of what the policies made of it, differ, apart
// from what the API server chooses. AnyOrder ignores the order of lists of objects.
func (c *Case) Changed(one, other framework.Result, anyOrder bool) []cel.Path {
	settled := func(result framework.Result) map[string]any {
		object := vary.OfClient(result.Fields())
		for _, path := range slices.Backward(c.chosen) {
			if !c.Whole { // otherwise they were sent again
				if without := vary.With(object, path, vary.Remove); without != nil {
					object = without
				}
			}
		}
		if anyOrder {
			return sorted(object)
		}
		return object
	}
	return vary.Difference(settled(one), settled(other), nil)
}

// SetByServer reports whether an object of a sample that is sent again lacks a value that the API server sets without the policies.
func (c *Case) SetByServer(path cel.Path) bool {
	object, _ := c.Request.Object.(*unstructured.Unstructured)
	if c.Whole || object == nil {
		return false
	}
	_, written := vary.At(object.Object, path)
	_, set := vary.At(c.Before.Fields(), path)
	return set && !written
}
