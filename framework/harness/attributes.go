package harness

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/kinds"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// ordinaryUser returns the user of requests without one.
const ordinaryUser = "admissiontest"

// generatedSuffix is the suffix of all generated names. As in an API server, a name is generated
// between the two phases (k8s.io/apiserver/pkg/registry/generic/registry/store.go).
const generatedSuffix = "bcdfg"

// prepared is a Request with the values that an API server sets before admission.
type prepared struct {
	target
	request   *framework.Request
	operation admission.Operation
	object    runtime.Object
	old       runtime.Object
	namespace string
	name      string
	options   runtime.Object
	dryRun    bool
	user      user.Info
}

// Attributes returns the attributes of a Request for a phase, Mutating or Validating. Each call
// returns a new attributes record of k8s.io/apiserver with copies of the Request's objects. It
// returns an error if no API server sends the Request, or if the type of its object is unknown.
func (h *Harness) Attributes(request framework.Request, phase framework.Phase) (admission.Attributes, error) {
	p, err := h.prepare(request)
	if err != nil {
		return nil, err
	}
	switch phase {
	case framework.Mutating:
	case framework.Validating:
		p.generateName()
	default:
		return nil, fmt.Errorf("make attributes: got phase %q, want %q or %q", phase, framework.Mutating, framework.Validating)
	}
	return p.record(), nil
}

// record returns an attributes record with the prepared objects themselves.
func (p *prepared) record() admission.Attributes {
	return admission.NewAttributesRecord(p.object, p.old, p.kind, p.namespace, p.name, p.resource, p.request.Subresource, p.operation, p.options, p.dryRun, p.user)
}

// prepare copies the objects of a Request and sets what an API server sets.
func (h *Harness) prepare(request framework.Request) (*prepared, error) {
	if set := request.HTTP.FieldsSet(); len(set) > 0 {
		return nil, fmt.Errorf("%s: Request.HTTP.%s: %w: a plugin in this process gets no HTTP request; set its options with WithOptions", request, set[0], framework.ErrFieldNotSupported)
	}
	if err := request.Shape(); err != nil {
		return nil, err
	}
	found, err := h.resolver.target(&request)
	if err != nil {
		return nil, err
	}
	if err := misspelt(&request, found.resource); err != nil {
		return nil, err
	}
	p := &prepared{
		target:    found,
		request:   &request,
		operation: admission.Operation(request.Operation()),
		namespace: request.Namespace,
		name:      request.Name,
		user:      userOf(request.User),
	}
	if p.object, err = h.resolver.given(request.Object, &request, &found); err != nil {
		return nil, err
	}
	if p.old, err = h.resolver.given(request.InProcess.OldObject, &request, &found); err != nil {
		return nil, err
	}
	p.setNamespace()
	if p.operation != admission.Connect {
		p.options, p.dryRun = optionsOf(&request, p.operation)
	}
	return p, nil
}

// misspelt returns an error if a request for a resource of Kubernetes has a subresource that only looks like one.
func misspelt(request *framework.Request, resource schema.GroupVersionResource) error {
	served := kinds.SubresourcesOf(resource.GroupResource())
	if request.Subresource == "" || request.InProcess.ImpossibleBecause != "" || slices.Contains(served, request.Subresource) {
		return nil
	}
	if hint := suggest.DidYouMean(request.Subresource, served); hint != "" {
		return fmt.Errorf("no API server serves %s/%s%s", resource.Resource, request.Subresource, hint)
	}
	return nil
}

// setNamespace determines the namespace of the request and sets it in the objects. In an object to create,
// it clears the metadata that a client cannot set (rest.WipeObjectMetaSystemFields).
func (p *prepared) setNamespace() {
	if p.request.Verb == framework.VerbDeleteCollection {
		p.name = ""
	}
	expected := "" // in the objects
	switch {
	case p.isNamespace():
		p.namespace = p.name
	case !p.namespaced:
		p.namespace = ""
	default:
		if p.namespace == "" && p.request.InProcess.ImpossibleBecause == "" {
			p.namespace = metav1.NamespaceDefault
		}
		expected = p.namespace
	}
	for _, object := range []runtime.Object{p.object, p.old} {
		accessor, err := meta.Accessor(object)
		if objects.IsNil(object) || err != nil {
			continue
		}
		if accessor.GetNamespace() == "" || expected == "" {
			accessor.SetNamespace(expected)
		}
	}
	if p.operation != admission.Create || p.request.Subresource != "" || p.request.InProcess.ImpossibleBecause != "" {
		return
	}
	if accessor, err := meta.Accessor(p.object); err == nil {
		accessor.SetUID("")
		accessor.SetCreationTimestamp(metav1.Time{})
		accessor.SetDeletionTimestamp(nil)
		accessor.SetDeletionGracePeriodSeconds(nil)
		accessor.SetSelfLink("")
	}
}

// generateName sets the name of an object that has generateName, as an API server does between
// the phases.
func (p *prepared) generateName() {
	if p.operation != admission.Create || objects.IsNil(p.object) {
		return
	}
	accessor, err := meta.Accessor(p.object)
	if err != nil {
		return
	}
	if accessor.GetName() == "" && accessor.GetGenerateName() != "" {
		accessor.SetName(accessor.GetGenerateName() + generatedSuffix)
	}
	if p.name == "" {
		p.name = accessor.GetName()
	}
}

// form says in which form a plugin gets an object: see the constants.
type form int

const (
	asItIs form = iota
	converted
	unstructuredly
	unstructuredlyConverted
	loosely
)

// form returns the form in which the plugin gets an object: its own type, another external
// version if the Request names one, or unstructured if the Request says so.
func (r *resolver) form(object runtime.Object, request *framework.Request, kind schema.GroupVersionKind) form {
	if _, ok := object.(runtime.Unstructured); ok {
		if object.GetObjectKind().GroupVersionKind() == kind {
			return asItIs
		}
		return loosely
	}
	own, err := r.schemeOf(object).New(kind)
	same := err == nil && typeOf(own).goType == typeOf(object).goType
	switch {
	case request.InProcess.Unstructured && same:
		return unstructuredly
	case request.InProcess.Unstructured:
		return unstructuredlyConverted
	case same || r.internal(object) || request.InProcess.Version.Version == "":
		return asItIs
	default:
		return converted
	}
}

// given returns a copy of an object in the form in which the plugin gets it.
func (r *resolver) given(object runtime.Object, request *framework.Request, found *target) (runtime.Object, error) {
	if objects.IsNil(object) {
		return nil, nil
	}
	shape := found.form
	if reflect.TypeOf(object) != found.goType { // of an Impossible request
		shape = r.form(object, request, found.kind)
	}
	switch shape {
	case converted:
		return r.convert(object, found.kind.GroupVersion())
	case loosely:
		return r.loosely(object, found.kind)
	case unstructuredly:
		return toUnstructured(object, found.kind)
	case unstructuredlyConverted:
		external, err := r.convert(object, found.kind.GroupVersion())
		if err != nil {
			return nil, err
		}
		return toUnstructured(external, found.kind)
	default:
		return object.DeepCopyObject(), nil
	}
}

func (r *resolver) internal(object runtime.Object) bool {
	kinds, _, err := r.schemeOf(object).ObjectKinds(object)
	return err == nil && slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		return kind.Version == runtime.APIVersionInternal
	})
}

// typed returns an empty object of a kind.
func (r *resolver) typed(kind schema.GroupVersionKind) (object runtime.Object, err error) {
	for _, scheme := range r.schemes {
		if object, err = scheme.New(kind); err == nil {
			return object, nil
		}
	}
	return nil, err
}

// loosely converts an unstructured object to another version, through its type.
func (r *resolver) loosely(object runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error) {
	if object.GetObjectKind().GroupVersionKind().GroupKind() != kind.GroupKind() {
		return object.DeepCopyObject(), nil
	}
	typed, err := r.typed(object.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("convert an unstructured %s to %s: %w: give the scheme that knows the type with harness.WithScheme(...), or the object in that version", kind.Kind, kind.GroupVersion(), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.(runtime.Unstructured).UnstructuredContent(), typed); err != nil {
		return nil, fmt.Errorf("convert an unstructured %s to %s: %w", kind.Kind, kind.GroupVersion(), err)
	}
	external, err := r.convert(typed, kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	return toUnstructured(external, kind)
}

func toUnstructured(object runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert a %T to unstructured: %w", object, err)
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp") // a missing time is encoded as null, which a client does not send
	}
	loose := &unstructured.Unstructured{Object: fields}
	loose.SetGroupVersionKind(kind)
	return loose, nil
}

// userOf returns the user that the plugin sees.
func userOf(sender *framework.User) user.Info {
	if sender == nil {
		return &user.DefaultInfo{Name: ordinaryUser, Groups: []string{user.AllAuthenticated}}
	}
	info := &user.DefaultInfo{Name: sender.Name, UID: sender.UID, Groups: slices.Clone(sender.Groups)}
	if sender.Extra != nil {
		info.Extra = maps.Clone(sender.Extra)
		for key, values := range info.Extra {
			info.Extra[key] = slices.Clone(values)
		}
	}
	return info
}
