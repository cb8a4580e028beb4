package rules

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
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
	var found []embedded
	for _, path := range vary.Paths(s.Object, nil) {
		other, is := embeddable(kinds.TypeAt(b.openAPI[s.kind.GroupVersion()], s.kind, path))
		if is && len(path) > 1 && other.GroupKind() != s.kind.GroupKind() {
			found = append(found, embedded{path, other})
		}
	}
	return found
}

// children creates the objects that a sample embeds: of a bad one as the requester, and of a good one as the controller that creates
// them.
func (b *bench) children(s sample) {
	manager := Controllers()[2]
	if s.stored != nil {
		return
	}
	for _, part := range b.embeddedIn(s) {
		child, what := b.addressed(childOf(s.Object, part)), fmt.Sprintf("the %s of %s", part.kind.Kind, part.path)
		if s.good >= 0 {
			child.SetGenerateName("contract-child-")
			controlled(child)
			b.add(Children, s, framework.Create(child).WithUser(manager), "create", what+", as "+manager.Name)
			continue
		}
		if len(vary.Below(s.defect, part.path)) == 0 {
			continue
		}
		if outside := b.outside(s, part); outside != nil {
			b.observed.Lacks[Embedded] = fmt.Sprintf("the policies also read what is not in the template: %s: %s", s.Name, outside)
			continue
		}
		child.SetName("contract-child")
		c := b.add(Embedded, s, framework.Create(child), "create", what)
		if alone := b.alone(s, slices.Concat(vary.Below(s.whole, part.path), vary.Below(s.defect, part.template())), part.path.String()); alone != nil {
			c.needs = []need{refused(alone)}
		}
	}
}

// outside returns what the policies that match a sample read of it outside of a template, apart from what says which object it
// is and its metadata. What is created from the template does not have it. Nil means nothing.
func (b *bench) outside(s sample, part embedded) cel.Path {
	for _, p := range b.subject.List() {
		if !slices.Contains(b.kindsOf(p), s.kind) {
			continue
		}
		for _, each := range p.reads(p.deciding(), "object").Reads {
			if slices.ContainsFunc(each.Paths, func(path cel.Path) bool { return path.Matches(part.template()) }) {
				continue
			}
			for _, path := range each.Paths {
				if !slices.Contains([]any{"apiVersion", "kind", "metadata"}, path[0]) && b.canHave(s.kind, path) {
					return path
				}
			}
		}
	}
	return nil
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

// templates are the rules about objects that others embed.
func templates() []Definition {
	return []Definition{{
		ID: "PO-DOOR-4", Name: "same-template-elsewhere", Level: framework.Should,
		Title:  "A defect in the template of an object is refused in what is created from the template too.",
		Why:    "A policy for Deployments does not see a Pod that anyone creates without a Deployment.",
		Fix:    "Add the other kind to the resources, and a variable that has the spec for each kind.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/10575", "https://github.com/kubescape/cel-admission-library/commit/2841287"},
		Check: func(t *T) {
			t.mustCarry(Embedded, "no defect is in a template of another kind")
			t.refused(Embedded)
		},
	}, {
		ID: "PO-LIFE-5", Name: "children-are-admitted", Level: framework.Should,
		Title:  "What a controller creates from the template of a good object is admitted.",
		Why:    "A Deployment that is admitted, and whose Pods are refused, shows no error to its author.",
		Fix:    "The same check at each level.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/10575"},
		Check: func(t *T) {
			t.must(t.sent(Children), "no good object has a template of another kind")
			t.allowed(Children)
		},
	}}
}
