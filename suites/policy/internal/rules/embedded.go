package rules

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// embeddable returns a kind by the name of the schema of its spec, which other kinds embed.
func embeddable(spec string) (schema.GroupVersionKind, bool) {
	kind, is := map[string]schema.GroupVersionKind{
		"io.k8s.api.core.v1.PodSpec":                   {Version: "v1", Kind: "Pod"},
		"io.k8s.api.core.v1.PersistentVolumeClaimSpec": {Version: "v1", Kind: "PersistentVolumeClaim"},
		"io.k8s.api.batch.v1.JobSpec":                  {Group: "batch", Version: "v1", Kind: "Job"},
		"io.k8s.api.resource.v1.ResourceClaimSpec":     {Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"},
	}[spec]
	return kind, is
}

// embedded is a part of a sample that is the spec of another kind: the template of a Deployment is that of a Pod.
type embedded struct {
	path cel.Path
	kind schema.GroupVersionKind
}

// template is where the part is, with metadata beside it.
func (e embedded) template() cel.Path { return e.path[:len(e.path)-1] }

// embeddedIn returns the parts of a sample that are the spec of another kind.
func (b *bench) embeddedIn(s sample) []embedded {
	kind, err := object.Kind(s.object)
	if err != nil {
		return nil
	}
	var found []embedded
	for _, path := range vary.Paths(s.object, nil) {
		other, is := embeddable(kinds.TypeAt(b.openAPI[kind.GroupVersion()], kind, path))
		if is && len(path) > 1 && other.GroupKind() != kind.GroupKind() {
			found = append(found, embedded{path, other})
		}
	}
	return found
}

// children creates the objects that samples embed: the bad ones as the requester, and the good ones as the controller that
// creates them.
func (b *bench) children(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		for _, part := range b.embeddedIn(s) {
			child := b.addressed(childOf(s.object, part))
			if s.good >= 0 {
				child.SetGenerateName("contract-child-")
				controlled(child)
				c := b.newCase(Children, s, framework.Create(child).WithUser(Controllers()[2]), "create", fmt.Sprintf("the %s of %s, as %s", part.kind.Kind, part.path, Controllers()[2].Name))
				cases = append(cases, c)
				continue
			}
			if len(vary.Below(s.defect, part.path)) == 0 {
				continue
			}
			if outside := b.outside(s, part); len(outside) > 0 {
				b.observed.Outside = append(b.observed.Outside, fmt.Sprintf("%s: %s", s.name, outside[0]))
				continue
			}
			child.SetName("contract-child")
			c := b.newCase(Embedded, s, framework.Create(child), "create", fmt.Sprintf("the %s of %s", part.kind.Kind, part.path))
			c.Alone = b.alone(s, slices.Concat(vary.Below(b.subject.Bad[s.bad].Defect(), part.path), vary.Below(s.defect, part.template())), part.path.String())
			if c.Alone != nil {
				cases = append(cases, c.Alone)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// outside returns what the policies that match a sample read of it outside of a template, apart from what says which object it
// is and its metadata. What is created from the template does not have it.
func (b *bench) outside(s sample, part embedded) []cel.Path {
	kind, err := object.Kind(s.object)
	if err != nil {
		return nil
	}
	var found []cel.Path
	for _, p := range b.subject.List() {
		if !slices.Contains(b.kindsOf(p), kind) {
			continue
		}
		for _, each := range p.reads(p.deciding(), "object").Reads {
			if slices.ContainsFunc(each.Paths, func(path cel.Path) bool { return path.Matches(part.template()) }) {
				continue
			}
			for _, path := range each.Paths {
				if !slices.Contains([]any{"apiVersion", "kind", "metadata"}, path[0]) && b.canHave(kind, path) {
					found = append(found, path)
				}
			}
		}
	}
	return found
}

// childOf returns the object that a part of another one describes, with the metadata beside it.
func childOf(parent map[string]any, part embedded) map[string]any {
	spec, _ := vary.At(parent, part.path)
	metadata, _ := vary.At(parent, part.template().Then("metadata"))
	apiVersion, kind := part.kind.ToAPIVersionAndKind()
	child := map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}
	if metadata != nil {
		child["metadata"] = metadata
	}
	return (&unstructured.Unstructured{Object: child}).DeepCopy().Object
}

// controlled gives an object a controller.
func controlled(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{
		"apiVersion": "contract.admissiontest.dev/v1", "kind": "Owner", "name": "contract", "uid": "00000000-0000-0000-0000-000000000000", "controller": true,
	}}, "metadata", "ownerReferences")
}

// owned sends what the policies made of good objects again, with a controller: the owner of an object wrote the parts of it
// that are the spec of another kind.
func (b *bench) owned() []*Case {
	var cases []*Case
	if !b.subject.mutating() {
		return nil
	}
	for _, s := range b.samples() {
		c := b.sampleCase(s)
		if s.good < 0 || c == nil || !c.Accepted() || !c.After.Allowed() || len(b.embeddedIn(s)) == 0 {
			continue
		}
		child := b.addressed(c.made(c.After))
		child.SetName(b.storedName(s, child.GetName(), "-owned"))
		controlled(child)
		sent := b.newCase(Owned, s, framework.Create(child), "create", "as the policies made it, with a controller")
		sent.Control = c
		for _, part := range b.embeddedIn(s) {
			sent.Templates = append(sent.Templates, part.template())
		}
		cases = append(cases, sent)
	}
	return cases
}

// appliedTwice applies each good object, which is no dry run, and then again.
func (b *bench) appliedTwice(ctx context.Context) error {
	for _, s := range b.samples() {
		c := b.sampleCase(s)
		if s.good < 0 || c == nil || !c.Accepted() || !b.copied[s.name] {
			continue
		}
		u := b.addressed(s.object)
		if u.GetName() == "" {
			continue
		}
		u.SetName(b.storedName(s, u.GetName(), "-applied"))
		var twice []*Case
		for _, which := range []string{"once", "again"} {
			applied := b.newCase(Applied, s, applying(u), "apply", which)
			applied.Request.DryRun, applied.Before = false, c.Before
			if err := b.send(ctx, []*Case{applied}, after); err != nil {
				return err
			}
			twice = append(twice, applied)
		}
		twice[1].Control = twice[0]
		b.observed.Cases = append(b.observed.Cases, twice[1])
	}
	return nil
}
