package rules

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// resendable finds out, before the policies are installed, which values the API server chooses itself in its response to the creation
// of a sample. It refuses its own Jobs and Services with them.
func (b *bench) resendable(ctx context.Context, samples []*Case) error {
	if !b.subject.mutating() {
		return nil
	}
	var again []*Case
	for _, c := range samples {
		same := *c
		again = append(again, &same)
	}
	if err := b.send(ctx, again, before); err != nil {
		return err
	}
	for i, c := range samples {
		if c.Accepted() {
			c.chosen = vary.Differences(c.Before.Fields(), again[i].Before.Fields())
		}
	}
	return nil
}

// made returns the object of a sample with what the policies made of it, for another creation.
func (c *Case) made(after framework.Result) map[string]any {
	sent, ok := c.Request.Object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	before, whole := vary.OfClient(c.Before.Fields()), vary.OfClient(after.Fields())
	for _, path := range c.chosen {
		value, has := vary.At(before, path)
		changed := vary.With(whole, path, func(any) (any, bool) { return value, has })
		if changed != nil && sent.GetKind() != "Pod" { // containers mount volumes with names that were chosen
			whole = changed
		}
	}
	return vary.Patched(sent.Object, object.MergePatch(before, whole))
}

// mutatedAgain creates what MutatingAdmissionPolicies made of good objects, also with a controller: the owner of an object wrote the parts
// of it that are the spec of another kind. Then it applies each good object twice.
func (b *bench) mutatedAgain(ctx context.Context) error {
	if !b.subject.mutating() {
		return nil
	}
	n := len(b.observed.Cases)
	var once, twice []*Case
	for _, s := range b.samples {
		c := b.sampleCase(s)
		if s.good < 0 || s.Deleted || !c.Accepted() {
			continue
		}
		if c.After.Allowed() {
			child := b.addressed(c.made(c.After))
			b.derive(Reapplied, s, child.Object, "as the policies made it").Control = c
			if parts := b.embeddedIn(s); len(parts) > 0 && s.stored == nil {
				child.SetName(b.storedName(s, child.GetName(), "-owned"))
				controlled(child)
				sent := b.derive(Owned, s, child.Object, "as the policies made it, with a controller")
				sent.Control = c
				for _, part := range parts {
					sent.Templates = append(sent.Templates, part.template())
				}
			}
		}
		if u, _ := b.again(s, "-applied"); u != nil {
			first, second := b.newCase(Applied, s, applying(u), "apply", "once"), b.newCase(Applied, s, applying(u), "apply", "again")
			first.Request.DryRun, second.Request.DryRun, second.Control = false, false, first
			once, twice = append(once, first), append(twice, second)
		}
	}
	b.observed.Cases = append(b.observed.Cases, twice...)
	for _, c := range b.observed.Cases[n:] {
		c.Before.Status.Code = http.StatusOK // it was accepted as the result of another request
	}
	if err := b.send(ctx, once, after); err != nil {
		return err
	}
	return b.send(ctx, b.observed.Cases[n:], after)
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
// labels of a Job, which it copies from a template. Entries of other clients, and elements beside others, were only sent with them.
func (b *bench) withoutPolicies(ctx context.Context) error {
	cases := slices.DeleteFunc(b.observed.Of(Reapplied, Foreign, Inert), func(c *Case) bool {
		return c.Before.Object != nil || c.Group == Reapplied && (!c.After.Allowed() || len(c.ChangedAgain()) == 0)
	})
	if len(cases) == 0 {
		return nil
	}
	if err := b.only(ctx, func(binding) bool { return false }); err != nil {
		return err
	}
	return b.send(ctx, cases, before)
}

// Changed returns the paths at which two responses to creations of a sample, or of what the policies made of it, differ, apart
// from what the API server chooses. AnyOrder ignores the order of lists of objects.
func (c *Case) Changed(one, other framework.Result, anyOrder bool) []cel.Path {
	settled := func(result framework.Result) map[string]any {
		fields := c.settled(result)
		if anyOrder {
			return sorted(fields)
		}
		return fields
	}
	return vary.Difference(settled(one), settled(other), nil)
}

// settled returns the object of a response without what the API server chooses.
func (c *Case) settled(result framework.Result) map[string]any {
	fields := vary.OfClient(result.Fields())
	for _, path := range slices.Backward(c.chosen) {
		if without := vary.With(fields, path, vary.Remove); without != nil {
			fields = without
		}
	}
	return fields
}

// SetByServer reports whether an object of a sample that is sent again lacks a value that the API server sets without the policies.
func (c *Case) SetByServer(path cel.Path) bool {
	sent, _ := c.Request.Object.(*unstructured.Unstructured)
	_, written := vary.At(sent.UnstructuredContent(), path)
	_, set := vary.At(c.Before.Fields(), path)
	return set && !written
}
