package shipped

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Project is what admission needs of the manifests of a project.
type Project struct {
	// Manifests are the objects to install.
	Manifests []Manifest

	rest       []Manifest // all other objects
	passedOver []string   // lines about documents that are no objects
}

// Manifest is one object of a file.
type Manifest struct {
	// Object is the object.
	Object map[string]any
	// File and Line are where its document begins.
	File string
	Line int

	text []byte // the document
	path string // where the object is in the document: "items[1]." in a List
}

func (m Manifest) kind() schema.GroupVersionKind { kind, _ := object.Kind(m.Object); return kind }
func (m Manifest) field(path ...string) string {
	text, _, _ := unstructured.NestedString(m.Object, path...)
	return text
}
func (m Manifest) name() string      { return m.field("metadata", "name") }
func (m Manifest) namespace() string { return m.field("metadata", "namespace") }

// String is KIND NAME.
func (m Manifest) String() string { return strings.TrimSpace(m.kind().Kind + " " + m.name()) }

// Objects returns the objects to install.
func (p *Project) Objects() []map[string]any {
	if p == nil {
		return nil
	}
	all := make([]map[string]any, len(p.Manifests))
	for i, m := range p.Manifests {
		all[i] = m.Object
	}
	return all
}

// Webhooks returns the names of the webhooks that are installed.
func (p *Project) Webhooks() []string {
	var names []string
	for _, manifest := range p.Objects() {
		webhooks, _ := manifest["webhooks"].([]any)
		for _, item := range webhooks {
			webhook, _ := item.(map[string]any)
			if name, _ := webhook["name"].(string); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// LeftOut returns a line for each kind that is not installed, with the number of objects, and one for each
// document of a folder that is not an object.
func (p *Project) LeftOut() []string {
	counts := map[string]int{}
	for _, m := range p.rest {
		counts[m.kind().Kind+" ("+m.kind().GroupVersion().String()+")"]++
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("not installed: %d %s", counts[kind], kind))
	}
	return append(lines, p.passedOver...)
}

// maxDepth is the largest depth of Lists in Lists.
const maxDepth = 8

// add adds the objects of a document: itself, or its items if it is a List.
func (p *Project) add(m Manifest, inFolder bool, depth int) error {
	kind, err := object.Kind(m.Object)
	_, isList := m.Object["items"].([]any)
	switch {
	case err != nil && inFolder:
		p.passedOver = append(p.passedOver, fmt.Sprintf("not installed: %s:%d: not a Kubernetes object: it has no apiVersion or no kind", m.File, m.Line))
		return nil
	case err != nil:
		return m.errorAt("", "the document has no apiVersion or no kind; expected a Kubernetes manifest", "begin with apiVersion: and kind:")
	case kind.Kind == "Kustomization":
		p.passedOver = append(p.passedOver, fmt.Sprintf("not installed: %s:%d: a Kustomization is not rendered: give the output of kustomize build", m.File, m.Line))
		return nil
	case !isList || !strings.HasSuffix(kind.Kind, "List"):
		if m.name() == "" && m.field("metadata", "generateName") == "" {
			return m.errorAt("metadata", fmt.Sprintf("the %s has no metadata.name; expected one", kind.Kind), "")
		}
		p.rest = append(p.rest, m)
		return nil
	case depth == maxDepth:
		return m.errorAt("", fmt.Sprintf("Lists in Lists, %d deep; expected manifests", maxDepth), "")
	}
	items, _ := m.Object["items"].([]any)
	for i, item := range items {
		inner := m
		fields, ok := item.(map[string]any)
		if !ok {
			return m.errorAt(fmt.Sprintf("items[%d]", i), fmt.Sprintf("items[%d] is not a map; expected a Kubernetes manifest", i), "")
		}
		inner.Object, inner.path = fields, fmt.Sprintf("%sitems[%d].", m.path, i)
		if err := p.add(inner, inFolder, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// pick moves what admission needs from rest to Manifests.
func (p *Project) pick() error {
	all := p.rest
	p.rest = nil
	var params []Manifest
	for _, m := range all {
		switch {
		case isAdmission(m.kind()) || m.kind().GroupKind() == crdKind:
			p.Manifests = append(p.Manifests, m)
		default:
			params = append(params, m)
		}
	}
	refs := p.paramRefs()
	for _, m := range params {
		if slices.ContainsFunc(refs, func(ref paramRef) bool { return ref.names(m) }) {
			p.Manifests = append(p.Manifests, m)
		} else {
			p.rest = append(p.rest, m)
		}
	}
	return errors.Join(p.unique(), p.policiesExist())
}

// unique removes repeated objects. It is an error if two of the same name differ.
func (p *Project) unique() error {
	first := map[string]Manifest{}
	var errs []error
	p.Manifests = slices.DeleteFunc(p.Manifests, func(m Manifest) bool {
		key := m.kind().GroupKind().String() + " " + m.namespace() + "/" + m.name()
		earlier, twice := first[key]
		if !twice {
			first[key] = m
		} else if !reflect.DeepEqual(earlier.Object, m.Object) {
			errs = append(errs, m.errorAt("metadata.name", fmt.Sprintf("another %s has different content; expected each object once", m), fmt.Sprintf("the other is at %s:%d: remove one; patches of kustomize are not applied", earlier.File, earlier.Line)))
		}
		return twice
	})
	return errors.Join(errs...)
}

// policiesExist checks that the policy of each binding is installed too. Its name on the server has a
// prefix, so a binding cannot name another one.
func (p *Project) policiesExist() error {
	var errs []error
	for _, m := range p.Manifests {
		kind, isBinding := strings.CutSuffix(m.kind().Kind, "Binding")
		if !isBinding || !isAdmission(m.kind()) {
			continue
		}
		var known []string
		for _, other := range p.Manifests {
			if isAdmission(other.kind()) && other.kind().Kind == kind {
				known = append(known, other.name())
			}
		}
		if name := m.field("spec", "policyName"); !slices.Contains(known, name) {
			hint := strings.TrimPrefix(suggest.DidYouMean(name, known), "; ")
			if hint == "" {
				hint = "give its file too"
			}
			errs = append(errs, m.errorAt("spec.policyName", fmt.Sprintf("%s: no %s %q is installed; expected the policy of each binding", m, kind, name), hint))
		}
	}
	return errors.Join(errs...)
}

// paramRef is what the paramRef of a binding names.
type paramRef struct {
	kind            schema.GroupKind
	namespace, name string // no name: the paramRef has a selector
	clusterScoped   bool   // a CustomResourceDefinition says so
}

// names reports whether an object is a parameter that the binding finds. One in no namespace of a
// kind that has namespaces is none: the binding looks for it in the namespace of the request.
func (r paramRef) names(m Manifest) bool {
	return m.kind().GroupKind() == r.kind && (m.name() == r.name || r.name == "") &&
		m.namespace() == r.namespace && (r.namespace != "" || r.clusterScoped)
}

// paramRefs returns the parameters that bindings name.
func (p *Project) paramRefs() []paramRef {
	var refs []paramRef
	for _, binding := range p.Manifests {
		if _, found, _ := unstructured.NestedMap(binding.Object, "spec", "paramRef"); !found {
			continue
		}
		for _, policy := range p.Manifests {
			if policy.kind().Kind+"Binding" != binding.kind().Kind || policy.name() != binding.field("spec", "policyName") {
				continue
			}
			ref := paramRef{
				kind:      schema.FromAPIVersionAndKind(policy.field("spec", "paramKind", "apiVersion"), policy.field("spec", "paramKind", "kind")).GroupKind(),
				namespace: binding.field("spec", "paramRef", "namespace"), name: binding.field("spec", "paramRef", "name"),
			}
			ref.clusterScoped = slices.ContainsFunc(p.Manifests, func(crd Manifest) bool {
				return crd.kind().GroupKind() == crdKind && crd.field("spec", "group") == ref.kind.Group &&
					crd.field("spec", "names", "kind") == ref.kind.Kind && crd.field("spec", "scope") == "Cluster"
			})
			refs = append(refs, ref)
		}
	}
	return refs
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"} //nolint:gochecknoglobals // a constant

// isAdmission reports whether objects of a kind are webhook configurations, policies or bindings.
func isAdmission(kind schema.GroupVersionKind) bool {
	return kind.Group == "admissionregistration.k8s.io"
}
